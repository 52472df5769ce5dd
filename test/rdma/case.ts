/** A case on the devices of Linux guests, and the ways to connect its two sides. */
import { PATIENCE, type Program } from '../interop/process.js';
import { address, type Rig } from '../interop/rig.js';

/** The guest with this library, and the one with Linux's own programs. */
export const [OURS, THEIRS] = [2, 3];
/** This host, whose HCA is the software HCA. */
export const HOST = 1;

/** Options for programs of this library that must not run on the software HCA. */
export const onDevice = { hca: 'rdma' } as const;

export interface RdmaCase {
  readonly name: string;
  /** Part of the short run. */
  readonly quick?: boolean;
  /** Throws on a failure, and {@link Skipped} where this machine or guest cannot do it. */
  run(rig: Rig): Promise<void>;
}

/** Why a case was not run. */
export class Skipped extends Error {}

/** A device of the guests: both have it, on links that are connected. */
export interface Device {
  readonly name: string;
  /** An address of a guest, which is on the device's link. */
  at(guest: number): string;
}

/** RoCEv2, on the first link of the guests, where this host is as well. */
export const rxe: Device = { name: 'rxe0', at: (guest) => address(guest, 4) };
/** iWARP, on the second link. */
export const siw: Device = { name: 'siw0', at: (guest) => `10.79.0.${guest}` };

/** Our program of test/interop/programs in {@link OURS}. */
export const example = (rig: Rig, program: string, ...args: readonly string[]): Program =>
  rig.nodeInGuest(OURS, onDevice, `test/interop/programs/${program}.js`, ...args);

/** A case's two sides by their command lines. */
export interface Meeting {
  /** Linux's program. */
  readonly theirs: string;
  /** Ours, of test/interop/programs, with its arguments. */
  readonly ours: readonly [program: string, ...args: string[]];
  /** The exit codes of a success of theirs; default: 0. */
  readonly ends?: readonly number[];
}

async function endedWell(program: Program, ends: readonly number[] = [0]): Promise<void> {
  const code = await program.end(PATIENCE);
  if (!ends.includes(code)) throw program.failure(`ended with exit code ${code}`);
}

/** Our program as a client of theirs, which listens on a port, or does not show it: port 0. */
export async function asClient(
  rig: Rig,
  device: Device,
  { theirs, ours, ends }: Meeting,
  port: number,
): Promise<void> {
  const there = rig.guest(THEIRS, theirs);
  // Ports of datagrams are not listed; the client retries.
  if (port > 0) await rig.listening(THEIRS, 'rdma', port, device.name);
  try {
    await example(rig, ...ours).ok(PATIENCE);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${there.failure('said').message}`);
  }
  await endedWell(there, ends);
}

/** Our program as the server. */
export async function asServer(rig: Rig, { theirs, ours, ends }: Meeting): Promise<void> {
  const server = example(rig, ...ours);
  await server.line(/^listening/, PATIENCE);
  const there = rig.guest(THEIRS, theirs);
  const outcomes = await Promise.allSettled([endedWell(there, ends), server.ok(PATIENCE)]);
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.message)] : []));
  if (failures.length > 0) throw new Error(failures.join('\n'));
}
