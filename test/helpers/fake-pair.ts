import * as assert from 'uvu/assert';
import { CqProviderIn, QpProviderIn } from '../../kernel-bridge/ioctl/provider-data.js';
import { WvIoId, WvIoQpCreate } from '../../kernel-bridge/ioctl/structs.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { WVProvider, WvError } from '../../winverbs/index.js';
import { FakeDoor } from './fake-door.js';
import { throwsStatus } from './outcome.js';

/** One of each WinVerbs object over a {@link FakeDoor}. */
export function openPair() {
  const door = new FakeDoor();
  const provider = new WVProvider(door);
  const device = provider.openDevice(0xabn);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(16);
  const cqProvider = CqProviderIn.decode(door.input('CQ_CREATE'), WvIoId.size);
  const cqRing = door.hca.rings.get(Number(cqProvider.ringAddress))!;
  const qp = pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    context: 'qp',
    sendDepth: 4,
    sendSge: 2,
    receiveDepth: 4,
    receiveSge: 2,
    maxInlineSend: 64,
  });
  const qpProvider = QpProviderIn.decode(door.input('QP_CREATE'), WvIoQpCreate.size);
  const qpRing = door.hca.rings.get(Number(qpProvider.ringAddress))!;
  const mw = pd.allocateMemoryWindow();
  const ep = provider.createConnectEndpoint();
  const setState = (state: number) => {
    qpRing.words[abi.qpState] = state;
  };
  /** Word `n` of the send WQE of this index. */
  const sendWord = (index: number, word: number) =>
    qpRing.words[(abi.qpHeaderBytes + index * qpProvider.sendStride) / 4 + word];
  return {
    door,
    hca: door.hca,
    provider,
    device,
    pd,
    cq,
    cqRing,
    qp,
    qpRing,
    token: qpProvider.token,
    mw,
    ep,
    setState,
    sendWord,
    /** Parents first. */
    all: [provider, device, pd, cq, mw, qp, ep],
  };
}

/** Checks that the call throws a WvError of this status, with such a message. */
export function throwsWv(body: () => unknown, status: number, text?: RegExp): void {
  assert.instance(throwsStatus(body, status, text), WvError);
}
