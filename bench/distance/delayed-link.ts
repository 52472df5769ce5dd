/** Two network namespaces with a link between them: one with delay, rate, queue and loss (`bench/native/delayed_link.c`), or a cable (veth). */
import { execFileSync } from 'node:child_process';
import { missingNative, nativeProgram } from '../peers/native-baselines.js';
import { Program } from '../processes.js';

/** Properties of the link in each direction. */
export interface LinkShape {
  /** Round-trip time in ms. */
  readonly roundTripMs: number;
  /** 0: unlimited. */
  readonly rateMbit: number;
  /** Lost packets per 1000. */
  readonly lossPerMille: number;
  /** Maximum packets that wait because of the rate. */
  readonly queue: number;
  /** TCP congestion control. The default is that of the OS. */
  readonly tcp?: 'cubic' | undefined;
}

const NETWORK = '10.251.0.0/24';
const MTU = 9000;
const INTERFACE = 'far0';
/** Length of the interface queue to the program that carries packets. */
const INTERFACE_QUEUE = 10_000;

/** The two ends: namespaces and addresses. */
export interface Ends {
  readonly spaces: readonly [client: string, server: string];
  readonly addresses: readonly [client: string, server: string];
}

/** Why this machine cannot create such a link; undefined if it can. */
export function missingLink(shape: LinkShape | 'cable'): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces and their links require root';
  try {
    execFileSync('ip', ['netns', 'list'], { stdio: 'ignore' });
  } catch {
    return 'ip (iproute2) is not installed, or the OS does not support network namespaces';
  }
  return shape === 'cable' ? undefined : missingNative({ program: 'delayed_link' });
}

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

/** Calls `use` with such a link and removes the link afterwards. */
export async function withLink<T>(shape: LinkShape | 'cable', use: (ends: Ends) => Promise<T>): Promise<T> {
  const spaces = [`ndbench${process.pid}a`, `ndbench${process.pid}b`] as const;
  const addresses = ['10.251.0.1', '10.251.0.2'] as const;
  let link: Program | undefined;
  try {
    for (const space of spaces) ip('netns', 'add', space);
    if (shape === 'cable') {
      const [one, other] = spaces;
      ip('-n', one, 'link', 'add', INTERFACE, 'type', 'veth', 'peer', 'name', INTERFACE, 'netns', other);
    } else link = await delayed(spaces, shape);
    for (const [i, space] of spaces.entries()) {
      ip('-n', space, 'link', 'set', 'lo', 'up');
      ip('-n', space, 'link', 'set', INTERFACE, 'mtu', `${MTU}`, 'txqueuelen', `${INTERFACE_QUEUE}`, 'up');
      ip('-n', space, 'address', 'add', `${addresses[i]}/24`, 'dev', INTERFACE);
      if (shape !== 'cable' && shape.tcp !== undefined)
        ip('-n', space, 'route', 'replace', NETWORK, 'dev', INTERFACE, 'congctl', shape.tcp);
    }
    return await use({ spaces, addresses });
  } finally {
    link?.end();
    for (const space of spaces) removeSpace(space);
  }
}

/** Starts the program that carries packets from one namespace to the other. */
async function delayed(spaces: Ends['spaces'], shape: LinkShape): Promise<Program> {
  const options = {
    delay: (shape.roundTripMs * 1000) / 2,
    rate: shape.rateMbit,
    loss: shape.lossPerMille * 1000,
    queue: shape.queue,
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${Math.round(value)}`]);
  const link = new Program(nativeProgram('delayed_link'), [...spaces, ...args], []);
  await link.line();
  return link;
}

function removeSpace(space: string): void {
  try {
    ip('netns', 'delete', space);
  } catch {
    // The namespace was never created.
  }
}
