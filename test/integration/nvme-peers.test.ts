/** NVMe over RDMA with peers that violate the protocol, do not respond, or are killed. */
import { rejects } from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  Admin,
  Command,
  Completion,
  ConnectCommand,
  ConnectData,
  ConnectReject,
  ConnectRequest,
  Fabrics,
  FabricsCommand,
  Io,
  LogCommand,
  NvmeStatus,
  nvmeStatusName,
  Property,
  PropertyCommand,
  RejectStatus,
  Sgl,
} from '../../nd/cli/nvme/capsules.js';
import { memoryStore, NvmeController, NvmeTarget } from '../../nd/cli/nvme/index.js';
import { type Memory, socketAddress } from '../../nd/cli/sides/connected-side.js';
import { HostV2, type SideV2 } from '../../nd/cli/sides/v2-side.js';
import { Status } from '../../nd/index.js';
import { ND, runNd } from '../helpers/nd-tool.js';

const NQN = 'nqn.2026-11.io.example:disk';
const HOST_NAME = 'nqn.2026-11.io.example:stranger';
const DATA_AT = 16_384;
/** Less than the time for which a DREQ without a reply is retransmitted. */
const CM_RETRIES_MS = 60_000;
const ending: (() => unknown)[] = [];

test.after.each(async () => {
  for (const end of ending.splice(0)) await end();
});

function serve(): NvmeTarget {
  const namespaces = [{ store: memoryStore(1 << 20) }];
  const target = NvmeTarget.listen({ port: 0, subsystems: [{ nqn: NQN, namespaces }] });
  ending.unshift(() => target.close());
  return target;
}

/** Asserts that the disk of another host is unaffected. */
async function stillServes({ port }: NvmeTarget): Promise<void> {
  const controller = await NvmeController.connect({ port, subsystem: NQN, queues: 1 });
  const bytes = randomBytes(5000);
  const disk = await controller.open();
  await disk.write(bytes);
  const { buffer: read } = await disk.read(Buffer.alloc(5000));
  await controller.close();
  assert.ok(read.equals(bytes));
}

/** A host that sends arbitrary data. */
class Stranger {
  readonly memory = Buffer.alloc(65_536);
  readonly side: SideV2;
  #place = 0;

  constructor(private readonly host = new HostV2()) {
    ending.unshift(() => this.host.release());
    this.side = host.newSide({ bytes: this.memory, receiveQueueDepth: 32 });
    ending.unshift(() => this.side.release());
    for (let n = 0; n < 32; n += 1) this.side.receive(n, this.side.sge(16 * n, 16));
  }

  async connect(target: NvmeTarget, values: Parameters<typeof ConnectRequest.make>[0] = {}): Promise<void> {
    const usual = { hostReceiveSize: 32, hostSendSize: 31, ...values };
    await this.side.connect(socketAddress('127.0.0.1', target.port), {
      privateData: ConnectRequest.make(usual),
    });
    await this.side.completeConnect();
  }

  send(bytes: Buffer): void {
    // Polls the completions of earlier Sends, which frees their entries.
    this.side.outbound.getResults([], 32);
    const at = 1024 + 256 * (this.#place++ % 32);
    bytes.copy(this.memory, at);
    this.side.send(0, this.side.sge(at, bytes.length));
  }

  /** Returns the status of a command's completion; undefined if the connection has ended. */
  async answer(bytes: Buffer): Promise<string | undefined> {
    this.send(bytes);
    const [received] = await this.side.received();
    if (received!.status !== Status.SUCCESS) return undefined;
    const place = received!.requestContext as number;
    const { statusField } = Completion.parse(this.memory, 16 * place);
    this.side.receive(place, this.side.sge(16 * place, 16));
    return nvmeStatusName(statusField >>> 1);
  }

  /** The data descriptor of its memory. */
  keyed(length: number) {
    const { address, token } = this.side.remote;
    return { sglType: Sgl.KEYED, address: address + BigInt(DATA_AT), keyedLength: length, key: token };
  }

  /** Creates the fabrics command Connect. */
  connectCommand(change: Partial<ReturnType<typeof ConnectData.parse>> = {}): Buffer {
    ConnectData.make({ controllerId: 0xffff, subsystem: NQN, host: HOST_NAME, ...change }).copy(
      this.memory,
      DATA_AT,
    );
    const bytes = Command.make({ opcode: Admin.FABRICS, flags: 0x40, ...this.keyed(1024) });
    FabricsCommand.emit({ type: Fabrics.CONNECT }, bytes);
    ConnectCommand.emit({ queueSize: 31 }, bytes);
    return bytes;
  }

  /** Connects to an admin queue whose controller is enabled. */
  static async ready(target: NvmeTarget): Promise<Stranger> {
    const stranger = new Stranger();
    await stranger.connect(target);
    assert.is(await stranger.answer(stranger.connectCommand()), 'SUCCESS');
    const enable = Command.make({ opcode: Admin.FABRICS, flags: 0x40 });
    FabricsCommand.emit({ type: Fabrics.PROPERTY_SET }, enable);
    PropertyCommand.emit({ offset: Property.CC, value: 0x46_0001 }, enable);
    assert.is(await stranger.answer(enable), 'SUCCESS');
    return stranger;
  }
}

for (const [values, reason] of [
  [{ recordFormat: 1 }, 'INVALID_RECORD_FORMAT'],
  [{ queueId: 999 }, 'INVALID_QUEUE_ID'],
  [{ hostSendSize: 0 }, 'INVALID_HOST_SEND_SIZE'],
  [{ hostSendSize: 60_000 }, 'INVALID_HOST_SEND_SIZE'],
  [{ hostReceiveSize: 0 }, 'INVALID_HOST_RECEIVE_SIZE'],
] as const) {
  test(`a connection request with ${JSON.stringify(values)} is rejected: ${reason}`, async () => {
    const target = serve();
    const stranger = new Stranger();
    await rejects(stranger.connect(target, values), /refused/);
    const { status } = ConnectReject.parse(Buffer.from(stranger.side.privateData));
    assert.is(status, RejectStatus[reason]);
    await stillServes(target);
  });
}

test('a capsule that is shorter than a command ends only its own connection', async () => {
  const target = serve();
  const stranger = await Stranger.ready(target);
  assert.is(await stranger.answer(Buffer.alloc(10)), undefined);
  await stillServes(target);
});

test('commands before Connect, and a second Connect, are out of sequence', async () => {
  const target = serve();
  const stranger = new Stranger();
  await stranger.connect(target);
  const identify = Command.make({ opcode: Admin.IDENTIFY, ...stranger.keyed(4096) });
  assert.is(await stranger.answer(identify), 'COMMAND_SEQUENCE_ERROR');
  const get = Command.make({ opcode: Admin.FABRICS });
  FabricsCommand.emit({ type: Fabrics.PROPERTY_GET }, get);
  assert.is(await stranger.answer(get), 'COMMAND_SEQUENCE_ERROR');
  assert.is(await stranger.answer(stranger.connectCommand({ host: '' })), 'CONNECT_INVALID_PARAMETERS');
  assert.is(
    await stranger.answer(stranger.connectCommand({ controllerId: 77 })),
    'CONNECT_INVALID_PARAMETERS',
  );
  assert.is(await stranger.answer(stranger.connectCommand()), 'SUCCESS');
  assert.is(await stranger.answer(identify), 'COMMAND_SEQUENCE_ERROR', 'not enabled');
  assert.is(await stranger.answer(stranger.connectCommand()), 'COMMAND_SEQUENCE_ERROR');
  await stillServes(target);
});

test('each kind of descriptor that does not fit its command has its own status', async () => {
  const target = serve();
  const stranger = await Stranger.ready(target);
  const identify = { opcode: Admin.IDENTIFY, namespaceId: 1 };
  const ask = (values: Partial<ReturnType<typeof Command.parse>>) => stranger.answer(Command.make(values));
  assert.is(await ask({ ...identify, ...stranger.keyed(4096) }), 'SUCCESS');
  assert.is(await ask({ ...identify, ...stranger.keyed(512) }), 'SGL_LENGTH_INVALID');
  assert.is(await ask({ ...identify, ...stranger.keyed(4096), sglType: 0x55 }), 'SGL_TYPE_INVALID');
  assert.is(await ask({ ...identify, blockLength: 4096, sglType: Sgl.IN_CAPSULE }), 'SGL_TYPE_INVALID');
  assert.is(await ask({ opcode: 0xee }), 'INVALID_OPCODE');
  assert.is(await ask({ opcode: Io.READ, ...stranger.keyed(8) }), 'SGL_LENGTH_INVALID');
  const log = Command.make({ opcode: Admin.GET_LOG_PAGE, ...stranger.keyed(4096) });
  LogCommand.emit({ page: 2, dwordsLow: 0xffff, dwordsHigh: 0xffff }, log);
  assert.is(await stranger.answer(log), 'INVALID_FIELD');
  await stillServes(target);
});

test('data beyond the end of the capsule is not read', async () => {
  const target = serve();
  const stranger = new Stranger();
  await stranger.connect(target);
  const inCapsule = (address: bigint, blockLength: number) => {
    const bytes = stranger.connectCommand();
    Command.emit({ sglType: Sgl.IN_CAPSULE, address, blockLength }, bytes);
    return bytes;
  };
  assert.is(await stranger.answer(inCapsule(0n, 1024)), 'SGL_OFFSET_INVALID');
  assert.is(await stranger.answer(inCapsule(0xffff_ffff_ffff_ffffn, 1024)), 'SGL_OFFSET_INVALID');
  assert.is(await stranger.answer(inCapsule(0n, 4)), 'SGL_LENGTH_INVALID');
  await stillServes(target);
});

test('a completion invalidates the key of its command if the command requests it', async () => {
  const target = serve();
  const stranger = await Stranger.ready(target);
  const { side } = stranger;
  const { address, token } = side.open({ bytes: stranger.memory, region: side.region } as unknown as Memory);
  const identify = (sglType: number) =>
    Command.make({
      opcode: Admin.IDENTIFY,
      namespaceId: 1,
      sglType,
      address: address + BigInt(DATA_AT),
      keyedLength: 4096,
      key: token,
    });
  assert.is(await stranger.answer(identify(Sgl.KEYED)), 'SUCCESS');
  assert.is(await stranger.answer(identify(Sgl.KEYED_INVALIDATE)), 'SUCCESS');
  assert.is(await stranger.answer(identify(Sgl.KEYED)), undefined, 'the key grants nothing any more');
  await stillServes(target);
});

test('an invalid key ends only its own connection', async () => {
  const target = serve();
  for (const opcode of [Admin.IDENTIFY, Admin.FABRICS]) {
    const stranger = opcode === Admin.IDENTIFY ? await Stranger.ready(target) : new Stranger();
    if (opcode === Admin.FABRICS) await stranger.connect(target);
    const bytes =
      opcode === Admin.FABRICS
        ? stranger.connectCommand()
        : Command.make({ opcode, ...stranger.keyed(4096) });
    Command.emit({ namespaceId: opcode === Admin.FABRICS ? Fabrics.CONNECT : 1, key: 0x7fff_0000 }, bytes);
    assert.is(await stranger.answer(bytes), undefined);
  }
  await stillServes(target);
});

test('random capsules either get a completion or end the connection', async () => {
  const target = serve();
  const known = [Admin.IDENTIFY, Admin.GET_LOG_PAGE, Admin.SET_FEATURES, Admin.FABRICS, Admin.ABORT, 0x55];
  const shape = fc.tuple(fc.constantFrom(...known), fc.uint8Array({ minLength: 63, maxLength: 200 }));
  let stranger = await Stranger.ready(target);
  const property = fc.asyncProperty(shape, async ([opcode, rest]) => {
    const answer = await stranger.answer(Buffer.from([opcode, ...rest]));
    if (answer === undefined) stranger = await Stranger.ready(target);
  });
  await fc.assert(property, { numRuns: 60 });
  await stillServes(target);
});

/** A target that accepts a connection and then executes `next`. */
async function strangeTarget(act: (side: SideV2, host: HostV2) => unknown): Promise<number> {
  const host = new HostV2();
  const side = host.newSide({ bytes: Buffer.alloc(8192) });
  ending.unshift(
    () => host.release(),
    () => side.release(),
  );
  side.receive(0, side.sge(4096, 4096));
  const { listening } = host;
  void listening.request(side).then(async () => {
    await act(side, host);
  });
  return listening.address.port;
}

const accepting = (act: (side: SideV2) => unknown) => async (side: SideV2) => {
  await side.accept({});
  await side.received();
  await act(side);
};
const complete = (side: SideV2, values: Parameters<typeof Completion.make>[0], length = 16) => {
  Completion.make(values).copy(side.bytes);
  side.send(0, side.sge(0, length));
};

const strangeTargets: readonly (readonly [string, (side: SideV2, host: HostV2) => unknown, RegExp])[] = [
  [
    'sends a completion of 3 bytes',
    accepting((side) => complete(side, {}, 3)),
    /must have 16 bytes; the target sent 3/,
  ],
  [
    'completes a command that was not sent',
    accepting((side) => complete(side, { commandId: 7777 })),
    /command 7777, which is not in flight/,
  ],
  [
    'refuses Connect',
    accepting((side) => complete(side, { statusField: NvmeStatus.CONNECT_BUSY << 1, commandId: 31 })),
    /CONNECT_BUSY/,
  ],
  ['never answers', accepting(() => {}), /Connect to .* did not complete within 200 ms/],
  ['disconnects', accepting((side) => side.disconnect()), /connection/],
  [
    'rejects the connection',
    (side) => side.connector.reject(ConnectReject.make({ status: RejectStatus.NO_RESOURCES })),
    /rejected queue 0: NO_RESOURCES/,
  ],
];
for (const [what, act, error] of strangeTargets) {
  test(`a target that ${what}: connecting fails with that reason`, async () => {
    const port = await strangeTarget(act);
    await rejects(NvmeController.connect({ port, subsystem: NQN, answerMs: 200 }), error);
  });
}

test('nd nvme exits with 1 if the target rejects it, because the target is not lost', async () => {
  const port = await strangeTarget((side) =>
    side.connector.reject(ConnectReject.make({ status: RejectStatus.NO_RESOURCES })),
  );
  const { code, stderr } = await runNd('nvme', 'info', '127.0.0.1', '--nqn', NQN, '--port', String(port));
  assert.is(code, 1, stderr);
  assert.match(stderr, /rejected queue 0: NO_RESOURCES/);
});

interface Running {
  readonly child: ChildProcess;
  readonly lines: string[];
  line(form: RegExp): Promise<string>;
}

function start(...args: string[]): Running {
  const child = spawn(process.execPath, [ND, 'nvme', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  ending.unshift(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout! });
  reader.on('line', (line) => lines.push(line));
  const line = async (form: RegExp): Promise<string> => {
    for (;;) {
      const found = lines.find((one) => form.test(one));
      if (found !== undefined) return found;
      await Promise.race([
        once(reader, 'line'),
        // 'exit' may be emitted before the last lines.
        once(child, 'close').then(([code, signal]) => {
          throw new Error(`nd nvme ${args[0]} ended with ${signal ?? code} before a line like ${form}.`);
        }),
      ]);
    }
  };
  return { child, lines, line };
}

const startTarget = async (path: string, port = 0): Promise<[Running, number]> => {
  const target = start('serve', '--nqn', NQN, '--port', String(port), '--file', path, '--size', '4');
  const line = await target.line(/^listening/);
  return [target, Number(/port (\d+)/.exec(line)![1])];
};

async function withFile(run: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'nvme-'));
  try {
    await run(join(folder, 'disk'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a target process that is killed and restarted: no byte of a stream is lost', async () => {
  await withFile(async (path) => {
    const [first, port] = await startTarget(path);
    const controller = await NvmeController.connect({ port, subsystem: NQN, reconnectMs: 20 });
    ending.unshift(() => controller.close());
    const disk = await controller.open();
    const bytes = randomBytes(4 << 20);
    const half = bytes.length / 2;
    await disk.write(bytes, 0, half, 0);
    const writing = disk.write(bytes, half, half, half);
    const lost = once(controller, 'lost');
    first.child.kill('SIGKILL');
    await Promise.race([lost, writing]);
    await once(first.child, 'exit');
    await startTarget(path, port);
    await writing;
    const { buffer: read } = await disk.read(Buffer.alloc(bytes.length));
    assert.ok(read.equals(bytes));
  });
});

test('a stopped target process counts as lost after the keep-alive timeout', async () => {
  await withFile(async (path) => {
    const [target, port] = await startTarget(path);
    const settings = { port, subsystem: NQN, keepAliveMs: 1000, reconnectForMs: 0 };
    const controller = await NvmeController.connect(settings);
    const closed = once(controller, 'closed');
    target.child.kill('SIGSTOP');
    const begun = performance.now();
    const [error] = await closed;
    assert.ok(performance.now() - begun < CM_RETRIES_MS, 'it does not wait for a DREP');
    assert.match(String(error), /reconnecting failed/);
    target.child.kill('SIGCONT');
  });
});

test('a host process that is killed: the target detects this and serves the next host', async () => {
  await withFile(async (path) => {
    const [target, port] = await startTarget(path);
    const place = ['127.0.0.1', '--nqn', NQN, '--port', String(port)];
    const writer = start('write', ...place, '--host-name', HOST_NAME);
    writer.child.stdin!.write(randomBytes(100_000));
    await target.line(new RegExp(`^host ${HOST_NAME}`));
    writer.child.kill('SIGKILL');
    await target.line(new RegExp(`^gone ${HOST_NAME}`));
    const discover = start('discover', '127.0.0.1', '--port', String(port));
    assert.is(await discover.line(/nqn/), `${NQN} at 127.0.0.1 port ${port}`);
    const info = start('info', ...place);
    assert.match(await info.line(/^namespace/), /namespace 1: 8192 blocks of 512 bytes/);
  });
});

test.run();
