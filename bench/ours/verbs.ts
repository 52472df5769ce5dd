/**
 * The path to real HCAs over a fake of rdma-core whose sends complete when they are posted (test/native/fake_rdma): post and poll of a
 * request, in batches, through the provider's classes that `winverbs` calls. The result is the additional time over the bare calls of
 * libibverbs, which a C++ program measures before and after.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { TokenTable } from '../../kernel-bridge/door/token-table.js';
import { type UvpCompletion, UvpSendRequest } from '../../kernel-bridge/door/user-verbs.js';
import { commandsOf } from '../../kernel-bridge/hca/command-words.js';
import { type HcaCommands, loadAddon, QpMask } from '../../kernel-bridge/hca/index.js';
import { loadVerbsAddon, type VerbsBinding, type VerbsHca } from '../../kernel-bridge/hca/verbs-binding.js';
import { QpState, QpType, WvOpcode, WvSend } from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { cqRingBytes, SoftCompletionQueue } from '../../kernel-bridge/uvp/completion-queue.js';
import { SoftQueuePair } from '../../kernel-bridge/uvp/queue-pair.js';
import { qpRingLayout } from '../../kernel-bridge/uvp/rings.js';
import { each, type Sample, timed, without } from '../samples.js';
import type { JobOf } from './job.js';

/** Built by bench/native/Makefile before this program starts. */
const native = fileURLToPath(new URL('../native/', import.meta.url));
const bareSchema = z.looseObject({ median: z.number().positive() });
/** Requests between two readings of the clock. */
const PART = 4096;
const DEPTH = 64;
const CQ_ENTRIES = 128;

function must(status: number, what: string): void {
  if (status !== Status.SUCCESS) throw new Error(`${what} failed with 0x${(status >>> 0).toString(16)}.`);
}

/** The time of a request with bare libibverbs calls, in µs. */
function bareTime(batch: number): number {
  const text = execFileSync(`${native}verbs`, ['bare', '--count', `${batch}`, '--no-pin'], {
    encoding: 'utf8',
  });
  return bareSchema.parse(JSON.parse(text)).median;
}

/** Opens a queue pair and a completion queue whose rings the fake device serves. */
function open(binding: VerbsBinding): { qp: SoftQueuePair; cq: SoftCompletionQueue; host: VerbsHca } {
  const host = new binding.VerbsHca(loadAddon().createWaker(() => {}));
  const device = host.openDevice('fake0');
  if (typeof device === 'string') throw new Error(device);
  const commands = commandsOf(host.commands, host, () => device.number);
  const { pd, status: allocated } = commands.allocatePd();
  must(allocated, 'The protection domain');
  const tokens = new TokenTable<SoftQueuePair>();
  const cq = new SoftCompletionQueue(binding, tokens, CQ_ENTRIES);
  const madeCq = commands.createCq(cq.ring.address, cqRingBytes(CQ_ENTRIES), CQ_ENTRIES);
  must(madeCq.status, 'The CQ');
  cq.handle = madeCq.cq;
  const create = {
    type: QpType.RC,
    sendCq: cq,
    receiveCq: cq,
    context: 1,
    sendDepth: DEPTH,
    sendSge: 1,
    receiveDepth: DEPTH,
    receiveSge: 1,
    maxInlineSend: 0,
  };
  const layout = qpRingLayout(create);
  const qp = new SoftQueuePair(binding, tokens, create, layout, cq, cq);
  const madeQp = commands.createQp({
    ...layout,
    ...{
      pd,
      sendCq: cq.handle,
      receiveCq: cq.handle,
      srq: 0,
      pkeyTable: 1,
      type: QpType.RC,
      signalAll: false,
    },
    ...{
      ringAddress: qp.address,
      ringBytes: layout.bytes,
      sendSge: 1,
      maxInline: 0,
      receiveSge: 1,
      token: qp.token,
    },
  });
  must(madeQp.status, 'The queue pair');
  qp.open(madeQp.qp, madeQp.qpn);
  run(commands, qp.handle);
  return { qp, cq, host };
}

/** Moves a queue pair to RTS. */
function run(commands: Pick<HcaCommands, 'modifyQp'>, qp: number): void {
  const gid = Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1]);
  const path = { source: gid, destination: gid, flowLabel: 0, trafficClass: 0, hopLimit: 64, scopeId: 0 };
  const attributes = {
    ...{ access: 0, pkeyIndex: 0, port: 1, pathMtu: 1024, destinationQpn: 1, receivePsn: 0, sendPsn: 0 },
    ...{
      responderResources: 1,
      initiatorDepth: 1,
      minRnrTimer: 12,
      ackTimeout: 14,
      retryCount: 7,
      rnrRetry: 7,
    },
  };
  const M = QpMask;
  const steps = [
    [QpState.INIT, M.pkeyIndex | M.port | M.access],
    [
      QpState.RTR,
      M.path | M.pathMtu | M.destinationQpn | M.receivePsn | M.responderResources | M.minRnrTimer,
    ],
    [QpState.RTS, M.ackTimeout | M.retryCount | M.rnrRetry | M.sendPsn | M.initiatorDepth],
  ] as const;
  for (const [state, mask] of steps) {
    must(commands.modifyQp(qp, M.state | mask, { ...attributes, path, state }), `The step to state ${state}`);
  }
}

/** The additional time of post and poll of a request over the bare calls, in µs. */
export function overBareCalls({ batch, seconds }: JobOf<'verbs'>): Sample {
  process.env.NETWORKDIRECT_IBVERBS = process.env.NETWORKDIRECT_RDMACM = `${native}libfake_rdma.so`;
  process.env.FAKE_RDMA_ECHO = '1';
  const { qp, cq, host } = open(loadVerbsAddon());
  const request = new UvpSendRequest();
  request.opcode = WvOpcode.RDMA_WRITE;
  request.flags = WvSend.SIGNALED;
  request.sgl = [{ region: { address: 4096, lkey: 1 }, offset: 0, length: 8 }];
  const completions: UvpCompletion[] = [];
  const before = bareTime(batch);
  const sample = timed(seconds, () => {
    for (let n = 0; n < PART; n += batch) {
      if (batch > 1) qp.startBatch();
      for (let i = 0; i < batch; i += 1) qp.postSend(request);
      if (batch > 1) qp.submitBatch();
      if (cq.poll(completions, batch) !== batch) throw new Error('A request did not complete.');
    }
  });
  const bare = (before + bareTime(batch)) / 2;
  host.close();
  return without(each(sample, PART), bare);
}
