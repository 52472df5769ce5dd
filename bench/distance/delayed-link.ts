/** Two network namespaces with a link between them that has delay, a rate, a queue and loss: `bench/native/delayed_link.c`. */
import { execFileSync } from 'node:child_process';
import { missingNative, nativeProgram } from '../peers/native-baselines.js';
import { Program } from '../processes.js';

/** What the link does with packets, each way. */
export interface LinkShape {
  /** Of both ways together, in ms. */
  readonly roundTripMs: number;
  /** 0: as fast as the machine is. */
  readonly rateMbit: number;
  /** Packets lost of 1000. */
  readonly lossPerMille: number;
  /** Packets that wait for the rate, at most. */
  readonly queue: number;
  /** TCP's congestion control between the two; default: the system's. */
  readonly tcp?: 'cubic' | undefined;
}

const NETWORK = '10.251.0.0/24';
const MTU = 9000;
/** What waits for the program that carries packets. */
const INTERFACE_QUEUE = 10_000;

/** The two ends: namespaces and addresses. */
export interface Ends {
  readonly spaces: readonly [client: string, server: string];
  readonly addresses: readonly [client: string, server: string];
}

/** Why this machine cannot have such a link; undefined: it can. */
export function missingLink(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces and TAP devices need root';
  try {
    execFileSync('ip', ['netns', 'list'], { stdio: 'ignore' });
  } catch {
    return 'ip (iproute2) is not installed, or this system has no network namespaces';
  }
  return missingNative({ program: 'delayed_link' });
}

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

/** Calls `use` with such a link, which ends with it. */
export async function withLink<T>(shape: LinkShape, use: (ends: Ends) => Promise<T>): Promise<T> {
  const spaces = [`ndbench${process.pid}a`, `ndbench${process.pid}b`] as const;
  const addresses = ['10.251.0.1', '10.251.0.2'] as const;
  let link: Program | undefined;
  try {
    for (const space of spaces) ip('netns', 'add', space);
    const options = {
      delay: (shape.roundTripMs * 1000) / 2,
      rate: shape.rateMbit,
      loss: shape.lossPerMille * 1000,
      queue: shape.queue,
    };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${Math.round(value)}`]);
    link = new Program(nativeProgram('delayed_link'), [...spaces, ...args], []);
    await link.line();
    for (const [i, space] of spaces.entries()) {
      ip('-n', space, 'link', 'set', 'lo', 'up');
      ip('-n', space, 'link', 'set', 'far0', 'mtu', `${MTU}`, 'txqueuelen', `${INTERFACE_QUEUE}`, 'up');
      ip('-n', space, 'address', 'add', `${addresses[i]}/24`, 'dev', 'far0');
      if (shape.tcp !== undefined)
        ip('-n', space, 'route', 'replace', NETWORK, 'dev', 'far0', 'congctl', shape.tcp);
    }
    return await use({ spaces, addresses });
  } finally {
    link?.end();
    for (const space of spaces) removeSpace(space);
  }
}

function removeSpace(space: string): void {
  try {
    ip('netns', 'delete', space);
  } catch {
    // It was never there.
  }
}
