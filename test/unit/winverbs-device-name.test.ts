/** The name of a device, and the error for a request that it does not support, on WinVerbs in memory. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CountersCode, IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import {
  AtomicCapability,
  DeviceType,
  QpState,
  WvAccess,
  WvOpcode,
  WvSend,
} from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { WvIoDeviceAttributes } from '../../kernel-bridge/ioctl/structs.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { RemoteMemory } from '../../winverbs/index.js';
import { throwsWv } from '../helpers/outcome.js';
import { failWith, openPair } from '../helpers/rig-door.js';

test('NOT_SUPPORTED names the device: a real HCA, the interface of a software one, or the GUID', async () => {
  const { provider, device, cq, pd, door } = openPair();
  const guid = device.guid.toString(16).padStart(16, '0');
  const name = () => {
    using again = provider.openDevice(device.guid);
    return again.name;
  };
  const listed = (at: object): void => {
    const bytes = Buffer.from(JSON.stringify([{ guid, name: 'eth0', index: 2, ...at }]));
    door.handlers.set(CountersCode.INTERFACES, () => new Uint8Array(bytes));
  };
  door.handlers.set(CountersCode.INTERFACES, () => failWith(Status.PROCEDURE_NOT_FOUND));
  assert.is(name(), guid, 'a driver that does not report it');
  listed({});
  assert.is(name(), 'eth0');
  listed({ hca: { device: 'mlx5_0', driver: 'mlx5_core', firmware: '1' } });
  assert.is(name(), 'mlx5_0');
  const refuse = () => failWith(Status.NOT_SUPPORTED);
  for (const code of ['CQ_RESIZE', 'MW_ALLOCATE', 'SRQ_CREATE'] as const)
    door.handlers.set(IoctlCode[code], refuse);
  const named = (code: string) => new RegExp(`^${code}: The device mlx5_0 does not support this`);
  throwsWv(() => cq.resize(2), Status.NOT_SUPPORTED, named('CQ_RESIZE'));
  throwsWv(() => pd.allocateMemoryWindow(), Status.NOT_SUPPORTED, named('MW_ALLOCATE'));
  throwsWv(() => pd.createSharedReceiveQueue(1, 1), Status.NOT_SUPPORTED, named('SRQ_CREATE'));
  door.on('EP_BIND', refuse);
  const endpoint = provider.createConnectEndpoint();
  const any = { family: 4, address: '0.0.0.0', port: 0 } as const;
  throwsWv(() => endpoint.bindAddress(any), Status.NOT_SUPPORTED, /does not support the request/);
});

test('unsupported requests are rejected when posted: immediate data on iWARP, atomics without the capability', () => {
  const lacks = (deviceType: number, atomicCapability: number) => {
    const pair = openPair();
    const { door, qp, setState, pd } = pair;
    setState(QpState.RTS);
    const attributes = WvIoDeviceAttributes.encode({ deviceType, atomicCapability });
    let asked = 0;
    door.on('DEVICE_QUERY', () => {
      asked++;
      return attributes;
    });
    const region = pd.registerMemory(Buffer.alloc(64), WvAccess.LOCAL_WRITE);
    const sge = { region, offset: 0, length: 8 };
    const remote = new RemoteMemory({ address: 0n, rkey: 1 });
    const { SIGNALED, IMMEDIATE } = WvSend;
    qp.send(0, [sge], SIGNALED);
    assert.is(asked, 0, 'no query for features of every device');
    return {
      release: () => pair.device.release(),
      immediate: [
        () => qp.send(0, [sge], IMMEDIATE, 5),
        () => qp.write(0, [sge], IMMEDIATE, remote, 0, 5),
        () =>
          qp.postSend([{ context: 0, opcode: WvOpcode.SEND, sgl: [sge], flags: IMMEDIATE, immediate: 5 }]),
      ],
      atomics: [
        () => qp.fetchAdd(0, sge, SIGNALED, 1n, remote, 0),
        () => qp.compareExchange(0, sge, SIGNALED, 1n, 2n, remote, 0),
      ],
      posted: () => pair.qpRing.words[abi.qpSendProducer]!,
    };
  };
  const none = lacks(DeviceType.IWARP, AtomicCapability.NONE);
  for (const post of none.immediate)
    throwsWv(
      post,
      Status.NOT_SUPPORTED,
      /The device \w+ does not support immediate data, because it is an iWARP device\.$/,
    );
  for (const post of none.atomics)
    throwsWv(post, Status.NOT_SUPPORTED, /^The device \w+ does not support atomic operations/);
  assert.is(none.posted(), 1);
  const whole = lacks(DeviceType.INFINIBAND, AtomicCapability.DEVICE);
  // The program may have released the device, but its queue pair keeps it alive.
  whole.release();
  for (const post of [whole.immediate[0]!, whole.atomics[0]!, whole.atomics[1]!]) post();
  assert.is(whole.posted(), 4);
});

test.run();
