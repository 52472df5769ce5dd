/**
 * A process whose device is unplugged while many requests of every kind are pending. It prints, as one line of JSON, their statuses, the
 * leftovers after everything was released, and whether the device works again.
 */

import { injectDeviceFault, openDeviceFile, readCounters } from '../../kernel-bridge/index.js';
import * as ioctl from '../../kernel-bridge/ioctl/index.js';
import { ADDRESS, connect, connectedPair, openListener, openSide } from './loopback.js';
import { outcomeName, thrownName } from './outcome.js';

const each = 8;
/** CM attribute of the reply to a DREQ. */
const DREP = 0x16;
const many = <T>(make: () => T): T[] => Array.from({ length: each }, make);

/** Whether the address belongs to a device. Such results are cached and must be invalidated. */
function lookedUp(): string {
  return thrownName(() => provider.translateAddress(ADDRESS));
}

// The peer does not reply to DREQs, so that a disconnect stays pending.
process.env.ND_OPTIONS = JSON.stringify({ faults: { dropMads: { [DREP]: 100_000 } } });
const pair = await connectedPair();
const { provider, a, b } = pair;
const guid = a.device.guid;
const { listener, peer } = openListener(provider);
const sides = many(() => openSide(provider));
const active = many(() => openSide(provider));
const { listener: silent, peer: silentPeer } = openListener(provider);
const leaving = openSide(provider);
const deserted = openSide(provider);
await connect(provider, leaving, deserted);
// A peer that never confirms the reply it has received.
const accepting = openSide(provider);
const mute = openSide(provider);
const { listener: third, peer: thirdPeer } = openListener(provider);
mute.ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
mute.ep.resolveRoute(thirdPeer);
const requested = third.getRequest(accepting.ep);
const answered = mute.ep.connect(mute.qp, thirdPeer, {});
await requested;
const accept = accepting.ep.accept(accepting.qp, {});
await answered;
// A lookup that gets no reply.
const asked = provider.createDatagramEndpoint();
asked.bindAddress({ family: 4, address: ADDRESS, port: 0 });
asked.listen(64);
const asking = provider.createDatagramEndpoint();
asking.bindAddress({ family: 4, address: ADDRESS, port: 0 });
const askedPeer = { family: 4, address: ADDRESS, port: asked.query().localAddress.port } as const;
const srq = a.pd.createSharedReceiveQueue(4, 1);
const file = openDeviceFile(ioctl.hcaFileName(guid));
const opened = file.ioctl(ioctl.IoctlCode.DEVICE_OPEN, ioctl.WvIoDeviceOpen.encode({}), ioctl.WvIoId.size);
const { id } = ioctl.WvIoId.decode(opened);
const onFile = (code: number, input: Uint8Array) => file.ioctlOverlapped(code, input, 4, () => undefined);

const waiting: Record<string, PromiseLike<unknown>[]> = {
  cqAny: many(() => a.cq.notify('any')),
  cqSolicited: many(() => b.cq.notify('solicited')),
  cqError: many(() => b.cq.notify('errors')),
  getRequest: sides.map(({ ep }) => listener.getRequest(ep)),
  connect: active.map(({ ep, qp }) => {
    ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    ep.resolveRoute(silentPeer);
    return ep.connect(qp, silentPeer, {});
  }),
  accept: [accept],
  disconnect: [leaving.ep.disconnect()],
  lookup: many(() => asking.lookup(askedPeer)),
  srqNotify: many(() => srq.notify()),
  deviceNotify: many(() => b.device.notify(1)),
  notifyDisconnect: [a.ep.notifyDisconnect(), b.ep.notifyDisconnect()],
  portEvent: many(() => onFile(ioctl.IoctlCode.DEVICE_NOTIFY, ioctl.WvIoId.encode({ id, data: 1 }))),
  fatalEvent: many(() => onFile(ioctl.HcaFileCode.CA_FATAL_EVENT, ioctl.WvIoObject.encode({ id }))),
};
const ends = Object.entries(waiting).map(async ([kind, requests]) => {
  const statuses = await Promise.all(requests.map(outcomeName));
  return [kind, [...new Set(statuses)]] as const;
});
const lookups = [lookedUp()];
injectDeviceFault(guid, 'unplug');
lookups.push(lookedUp());
const ended = Object.fromEntries(await Promise.all(ends));
for (const side of [...sides, ...active, leaving, deserted, accepting, mute]) side.release();
for (const one of [listener, silent, third, asked, asking, srq]) one.release();
file.close();
injectDeviceFault(guid, 'plug');
lookups.push(lookedUp());
const { port } = peer;
pair.release();
const { objects, devices, io } = readCounters();
// The device is present again, and the listener's port is free again.
const again = await connectedPair();
const heir = again.provider.createConnectEndpoint();
heir.bindAddress({ family: 4, address: ADDRESS, port });
heir.release();
again.release();
const { pd, mr, mw, cq, srq: srqs, qp } = objects;
const left = {
  pd,
  mr,
  mw,
  cq,
  srq: srqs,
  qp,
  removing: devices.removing,
  abandoned: io.abandonedIrps,
  faults: io.driverFaults,
};
console.log(JSON.stringify({ ended, left, lookups }));
