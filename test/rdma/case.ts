/** A case on the devices of Linux guests, and the ways to connect its two sides. */
import { type Program, TIMEOUT_SECONDS } from '../interop/process.js';
import { address, type Rig } from '../interop/rig.js';

/** The guest with this library. */
export const [OURS, THEIRS] = [2, 3];
/** This host, whose HCA is the software HCA. */
export const HOST = 1;

/** Options for programs of this library that must not run on the software HCA. */
export const onDevice = { hca: 'rdma' } as const;

export interface RdmaCase {
  readonly name: string;
  /** Whether it belongs to the short run. */
  readonly quick?: boolean;
  /** Runs the case. Throws on a failure, or {@link Skipped} if this machine or guest cannot run it. */
  run(rig: Rig): Promise<void>;
}

/** The reason why a case was not run. */
export class Skipped extends Error {}

/** A device that both guests have, on connected links. */
export interface Device {
  readonly name: string;
  /** The address of a guest on the device's link. */
  at(guest: number): string;
}

/** RoCEv2, on the first link of the guests, to which this host is also connected. */
export const rxe: Device = { name: 'rxe0', at: (guest) => address(guest, 4) };
/** iWARP, on the second link. */
export const siw: Device = { name: 'siw0', at: (guest) => `10.79.0.${guest}` };

/** Our program of test/interop/programs in {@link OURS}. */
export const example = (rig: Rig, program: string, ...args: readonly string[]): Program =>
  rig.nodeInGuest(OURS, onDevice, `test/interop/programs/${program}.js`, ...args);

/** The command lines of a case's two sides. */
export interface Meeting {
  /** The command line of Linux's program. */
  readonly theirs: string;
  /** Our program of test/interop/programs, with its arguments. */
  readonly ours: readonly [program: string, ...args: string[]];
  /** Exit codes that mean success of Linux's program; default: 0. */
  readonly ends?: readonly number[];
}

async function endedWell(program: Program, ends: readonly number[] = [0]): Promise<void> {
  const code = await program.end(TIMEOUT_SECONDS);
  if (!ends.includes(code)) throw program.failure(`ended with exit code ${code}`);
}

/** Runs our program as a client of Linux's, which listens on a port; 0: the port cannot be detected. */
export async function asClient(
  rig: Rig,
  device: Device,
  { theirs, ours, ends }: Meeting,
  port: number,
): Promise<void> {
  const there = rig.guest(THEIRS, theirs);
  // Ports of datagrams are not listed, but the client retries.
  if (port > 0) await rig.listening(THEIRS, 'rdma', port, device.name);
  try {
    await example(rig, ...ours).ok(TIMEOUT_SECONDS);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${there.failure('said').message}`);
  }
  await endedWell(there, ends);
}

/** Runs our program as the server. */
export async function asServer(rig: Rig, { theirs, ours, ends }: Meeting): Promise<void> {
  const server = example(rig, ...ours);
  await server.line(/^listening/, TIMEOUT_SECONDS);
  const there = rig.guest(THEIRS, theirs);
  const outcomes = await Promise.allSettled([endedWell(there, ends), server.ok(TIMEOUT_SECONDS)]);
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.message)] : []));
  if (failures.length > 0) throw new Error(failures.join('\n'));
}
