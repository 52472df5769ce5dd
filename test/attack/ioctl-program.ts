/**
 * A program that sends invalid requests to its kernel, on both paths: `ioctl-program port count seed`. On the control path,
 * IOCTLs of random bytes on one file, with the ids of another; on the data path, rings of queue pairs with random words. It is
 * also the partner of a bystander.
 */
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { type DeviceFile, openDeviceFile, readCounters } from '../../kernel-bridge/index.js';
import {
  IoctlCode,
  ibatTable,
  ioctlTable,
  Status,
  StatusError,
  statusHex,
  statusName,
  WvIoObject,
} from '../../kernel-bridge/ioctl/index.js';
import { openProvider, QpState, RemoteMemory, WvSend } from '../../winverbs/index.js';
import { examples, type Live, makeLiveObjects } from '../helpers/live-objects.js';
import { connect, openSide, type Side } from '../helpers/loopback.js';
import { seeded } from '../helpers/random.js';
import { ask } from './bystander.js';

const addon = loadAddon();

export interface IoctlReport {
  readonly done: number;
  readonly succeeded: number;
  readonly foreignIds: number;
  readonly scribbles: number;
  readonly findings: string[];
  readonly rounds: number;
}

/** Number of IOCTLs so far, sent before the report. */
export interface IoctlProgress {
  readonly progress: number;
}

const [port, count, seed] = process.argv.slice(2).map(Number) as [number, number, number];
const random = seeded(seed);
const below = (n: number): number => Math.floor(random() * n);
/** Number of IOCTLs before the objects are recreated. */
const WORLD = 1500;
/** One in this many attacks the rings instead. */
const RINGS_ONE_IN = 20;
/** A size other than the bystander's, so that their rings do not share an allocation. */
const SCRIBBLED = { sendDepth: 64, receiveDepth: 64 };
const rows = [...ioctlTable, ...ibatTable];
const findings: string[] = [];
let succeeded = 0;
let foreignIds = 0;
let scribbles = 0;

const provider = openProvider();
const bystander = ask(provider, port);
while (bystander.health.rounds === 0 && bystander.health.failure === undefined) await turn();

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Rings created since the list was emptied. */
const rings: Uint32Array[] = [];
const { allocateRing } = addon;
addon.allocateRing = (bytes) => {
  const ring = allocateRing(bytes);
  rings.push(new Uint32Array(ring.buffer));
  return ring;
};

interface World {
  readonly file: DeviceFile;
  readonly other: DeviceFile;
  readonly ibat: DeviceFile;
  readonly live: Live;
  readonly theirs: Live;
}

function statusOf(call: () => Uint8Array, most: number): number {
  try {
    const { length } = call();
    if (length > most) findings.push(`${length} bytes of output, although only ${most} were requested`);
    succeeded++;
    return Status.SUCCESS;
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
}

function attackDoor1({ file, ibat, live, theirs }: World): void {
  const row = rows[below(rows.length)]!;
  const target = (ibatTable as readonly unknown[]).includes(row) ? ibat : file;
  const how = below(3);
  const example = examples(live)[row.name as keyof ReturnType<typeof examples>]();
  let input: Uint8Array | null = example;
  if (how === 0 || example === null) {
    input = Uint8Array.from(
      { length: below(4) === 0 ? below(600) : (row.input?.size ?? 0) + below(40) },
      () => (below(3) === 0 ? below(256) : below(2)),
    );
  } else {
    input = Uint8Array.from(example);
    for (let n = below(4); n > 0 && input.length > 0; n--) input[below(input.length)] = below(256);
    if (below(6) === 0) input = input.slice(0, below(input.length + 1));
  }
  // Ids of the other file, either at the position of the first id or anywhere.
  if (how === 2 && input.length >= 8) {
    const place = below(2) === 0 ? 0 : below(Math.floor(input.length / 8));
    const id = theirs.ids[below(theirs.ids.length)]!;
    new DataView(input.buffer, input.byteOffset).setBigUint64(place * 8, id, true);
    foreignIds++;
  }
  const room = below(5) === 0 ? below(4096) : (row.output?.size ?? 0) + below(64);
  const status =
    row.pends || below(4) === 0
      ? statusOf(() => {
          const request = target.ioctlOverlapped(row.code, input, room, (output) => output);
          request.cancel();
          return request.getResult({ wait: true });
        }, room)
      : statusOf(() => target.ioctl(row.code, input, room), room);
  if (statusName(status) === statusHex(status) || status === Status.PENDING) {
    findings.push(`${row.name} ended in ${statusHex(status)}`);
  }
}

/** Checks that all objects of the other file still exist, because each can be destroyed. */
function othersLive({ other, theirs }: World): void {
  for (const [code, id] of [
    [IoctlCode.AH_DESTROY, theirs.ah],
    [IoctlCode.QP_DESTROY, theirs.qp],
    [IoctlCode.QP_DESTROY, theirs.srqQp],
    [IoctlCode.QP_DESTROY, theirs.udQp],
    [IoctlCode.SRQ_DESTROY, theirs.srq],
    [IoctlCode.CQ_DESTROY, theirs.cq],
    [IoctlCode.MW_DEALLOCATE, theirs.mw],
    [IoctlCode.EP_DESTROY, theirs.endpoints.bound],
    [IoctlCode.EP_DESTROY, theirs.endpoints.listening],
  ] as const) {
    const status = statusOf(() => other.ioctl(code, WvIoObject.encode({ id }), 0), 0);
    if (status !== Status.SUCCESS) {
      findings.push(
        `an object of the file that was left alone: IOCTL ${statusHex(code)} ended in ${statusName(status)}`,
      );
    }
  }
}

let pair: { a: Side; b: Side; queueRings: Uint32Array[] } | undefined;

async function attackDoor2(): Promise<void> {
  if (pair === undefined) {
    rings.length = 0;
    const [a, b] = [openSide(provider, SCRIBBLED), openSide(provider, SCRIBBLED)];
    // Completion queues have rings that the program itself reads; queue pairs have the largest ones.
    const largest = Math.max(...rings.map(({ length }) => length));
    const queueRings = rings.filter(({ length }) => length === largest);
    await connect(provider, a, b);
    pair = { a, b, queueRings };
  }
  const { a, b, queueRings } = pair;
  const remote = new RemoteMemory({ address: BigInt(b.region.address), rkey: b.region.rkey });
  const sgl = [{ region: a.region, offset: below(4096), length: below(4096) }];
  try {
    if (below(2) === 0) b.qp.postReceive('r', [{ region: b.region, offset: 0, length: 4096 }]);
    for (let n = below(4); n > 0; n--) {
      const words = queueRings[below(queueRings.length)];
      if (words === undefined) break;
      words[below(words.length)] = below(3) === 0 ? below(2 ** 32) : below(64);
      scribbles++;
    }
    if (below(2) === 0) a.qp.send('s', sgl, WvSend.SIGNALED);
    else a.qp.write('w', sgl, WvSend.SIGNALED, remote, below(4096));
    addon.doorbell[0] = below(2) === 0 ? below(2 ** 32) : below(4096);
    addon.ringDoorbell();
    a.cq.poll([], 16);
    b.cq.poll([], 16);
  } catch {
    // A program that damages its own rings may receive arbitrary completions.
  }
  if (a.qp.state === QpState.ERROR || b.qp.state === QpState.ERROR || below(200) === 0) {
    a.release();
    b.release();
    pair = undefined;
  }
}

const before = { ...readCounters().objects };
let done = 0;
while (done < count) {
  const file = openDeviceFile('\\\\.\\WinVerbs');
  const other = openDeviceFile('\\\\.\\WinVerbs');
  const ibat = openDeviceFile('\\\\.\\ibat');
  const live = makeLiveObjects(file, ibat, addon);
  const theirs = makeLiveObjects(other, ibat, addon);
  const world = { file, other, ibat, live, theirs };
  for (let n = 0; n < WORLD && done < count; n++, done++) {
    if (done % 200 === 0) await turn();
    if (below(RINGS_ONE_IN) === 0) await attackDoor2();
    attackDoor1(world);
  }
  file.close();
  othersLive(world);
  other.close();
  ibat.close();
  live.release();
  theirs.release();
  rings.length = 0;
  process.send!({ progress: done } satisfies IoctlProgress);
  if (findings.length > 20) break;
}
pair?.a.release();
pair?.b.release();
const { rounds: roundsBefore } = bystander.health;
while (bystander.health.rounds < roundsBefore + 10 && bystander.health.failure === undefined) await turn();
await bystander.stop();
if (bystander.health.failure !== undefined) findings.push(`bystander: ${bystander.health.failure}`);
const { objects } = readCounters();
for (const kind of ['pd', 'mr', 'mw', 'ah', 'cq', 'srq', 'qp'] as const) {
  if (objects[kind] !== before[kind])
    findings.push(`${objects[kind]} of ${kind} are left, not ${before[kind]}`);
}
process.send!({
  done,
  succeeded,
  foreignIds,
  scribbles,
  findings,
  rounds: bystander.health.rounds,
} satisfies IoctlReport);
process.exit();
