// Devices that are removed or fail: every pending request ends, everything can be freed, and nothing is left.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { FaultsCode } from '../../kernel-bridge/ioctl/codes.js';
import { QpState, WvEvent } from '../../kernel-bridge/ioctl/constants.js';
import { statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { ciQueryCa } from '../../kernel-bridge/kernel/hca-driver/ci-attributes.js';
import { ciCloseCa } from '../../kernel-bridge/kernel/hca-driver/ci-ca.js';
import { ciGetCaFatalEvent, ciGetCaPortEvent } from '../../kernel-bridge/kernel/hca-driver/ci-events.js';
import type { IbCa } from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';
import { openCa, openedCa, VerbCall } from '../helpers/direct-verbs.js';
import { ethGuid, hostInterface, KernelRig, type Submitted, sound } from '../helpers/kernel-rig.js';
import { cmReply } from '../helpers/rig-cm.js';

const name = ({ status }: { status: number }): string => statusName(status);
const nothing = { pd: 0, mr: 0, mw: 0, cq: 0, qp: 0, srq: 0, ring: 0, range: 0 };

/** Sends a request to the faults' device file. */
function fault(rig: KernelRig, code: number, guid = ethGuid): Submitted {
  const file = rig.open('\\\\.\\NetworkDirectFaults').answer!.information;
  const asked = rig.control(code, s.WvIoGuid.encode({ guid }), 0, file);
  rig.close(file);
  return asked;
}

const ways: Record<string, (rig: KernelRig) => void> = {
  'a simulated unplug': (rig) => assert.is(name(fault(rig, FaultsCode.UNPLUG)), 'SUCCESS'),
  'an interface that vanishes': (rig) => {
    rig.network.list = rig.network.list.filter((one) => one.name !== 'eth0');
    rig.kernel.ports.refresh(true);
  },
};

test('a network that reports changes is only scanned when it reports one', () => {
  const rig = new KernelRig();
  rig.network.reportsChanges = true;
  rig.queuePair();
  assert.is(rig.network.watchers.size, 1);
  const { reads } = rig.network;
  rig.network.list = rig.network.list.filter((one) => one.name !== 'eth0');
  assert.is(rig.network.reads, reads);
  for (const reported of rig.network.watchers) reported();
  assert.is(rig.network.reads, reads + 1);
  assert.is(rig.kernel.hcaDriver.counters.removing, 1, 'the device of eth0 waits for its owner');
  rig.kernel.close();
  assert.is(rig.network.watchers.size, 0);
  sound(rig);
});

/** Waiting requests of each kind, on eth0. */
function busy(rig: KernelRig) {
  const { device, pd, cq, qp, handle } = rig.queuePair();
  const spare = rig.qp(pd, cq);
  const spareHandle = [...rig.hca.qps.keys()].at(-1)!;
  const { id: listener } = rig.listener();
  const waiting = rig.endpoint();
  const connecting = rig.endpoint();
  rig.bind(connecting);
  rig.route(connecting);
  const connected = rig.endpoint();
  rig.bind(connected);
  rig.route(connected);
  rig.connect(connected, qp);
  rig.cm.connections[0]!.events.replied!(cmReply());
  rig.accept(connected, qp);
  const ca = openedCa(rig);
  return {
    ids: { device, pd, cq, qp, spare, connected, waiting, listener },
    handles: [handle, spareHandle],
    ca,
    requests: {
      cq: rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0),
      device: rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: device, data: 1 }), 4),
      getRequest: rig.getRequest(listener, waiting),
      connect: rig.connect(connecting, spare),
      disconnectNotify: rig.notify(connected),
    },
    verbs: {
      fatal: new VerbCall<number>((irp) => ciGetCaFatalEvent(ca, irp)),
      port: new VerbCall<number>((irp) => ciGetCaPortEvent(ca, 1, irp)),
    },
  };
}

const closeCa = (ca: IbCa) => new VerbCall<number>((irp) => ciCloseCa(ca, irp));

for (const [what, unplug] of Object.entries(ways)) {
  test(`K6: ${what} ends all pending requests in DEVICE_REMOVED, and leaves nothing`, () => {
    const rig = new KernelRig();
    const { ids, handles, ca, requests, verbs } = busy(rig);
    const all = { ...requests, ...verbs };
    for (const [key, request] of Object.entries(all)) assert.is(name(request), 'PENDING', key);
    unplug(rig);
    for (const [key, request] of Object.entries(all)) assert.is(name(request), 'DEVICE_REMOVED', key);
    for (const handle of handles) assert.is(rig.qpState(handle), QpState.ERROR);
    assert.is([...rig.hca.waiters.values()].flat().length, 0);
    assert.is(rig.hca.claims.size, 0, 'ports are free');
    assert.is(rig.cm.connections[0]!.calls.at(-1), 'abandon');
    // From here on, calls come after the removal.
    assert.is(name(rig.notify(ids.connected)), 'DEVICE_REMOVED');
    assert.is(name(rig.disconnect(ids.connected)), 'INVALID_DEVICE_STATE');
    assert.is(
      name(rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: ids.device, data: 1 }), 4)),
      'DEVICE_REMOVED',
    );
    assert.is(name(rig.ioctl('DEVICE_QUERY', rig.id(ids.device))), 'FILE_FORCED_CLOSED');
    assert.is(
      name(rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: ids.cq, data: 1 }), 0)),
      'FILE_FORCED_CLOSED',
    );
    assert.is(
      name(new VerbCall<number>((irp) => ciQueryCa(ca, new Uint8Array(64), irp))),
      'FILE_FORCED_CLOSED',
    );
    assert.is(name(new VerbCall<number>((irp) => ciGetCaFatalEvent(ca, irp))), 'DEVICE_REMOVED');
    assert.is(name(rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({ guid: ethGuid }))), 'NO_SUCH_DEVICE');
    // The endpoint that waited for a request does not depend on the device, so another listener can use it.
    assert.is(name(rig.bind(ids.waiting, 0, '127.0.0.1')), 'SUCCESS');
    // Removal waits for references.
    assert.equal(rig.kernel.hcaDriver.counters, { devices: 2, removing: 1 });
    assert.is(name(rig.close()), 'SUCCESS');
    assert.equal(rig.kernel.hcaDriver.counters, { devices: 2, removing: 1 });
    assert.is(name(closeCa(ca)), 'SUCCESS');
    assert.equal(rig.kernel.hcaDriver.counters, { devices: 2, removing: 0 });
    assert.equal(rig.hca.objectCounts(), nothing);
    sound(rig);
  });
}

test('an unplugged device is added again as a new one', () => {
  const rig = new KernelRig();
  const device = rig.device();
  assert.is(name(fault(rig, FaultsCode.UNPLUG)), 'SUCCESS');
  assert.is(name(fault(rig, FaultsCode.UNPLUG)), 'NO_SUCH_DEVICE');
  assert.not.ok(rig.kernel.hcaDriver.guids().includes(ethGuid));
  assert.is(name(rig.bind(rig.endpoint())), 'INVALID_ADDRESS', 'its addresses are gone as well');
  assert.is(name(fault(rig, FaultsCode.PLUG)), 'SUCCESS');
  assert.is(name(rig.ioctl('DEVICE_QUERY', rig.id(rig.device()))), 'SUCCESS');
  assert.is(name(rig.ioctl('DEVICE_QUERY', rig.id(device))), 'FILE_FORCED_CLOSED');
  rig.close();
  assert.equal(rig.kernel.hcaDriver.counters, { devices: 3, removing: 0 });
  sound(rig);
});

test('K7: other devices keep their requests, connections and events', () => {
  const rig = new KernelRig();
  const lo = rig.device(rig.kernel.hcaDriver.guids()[0]!);
  const cq = rig.cq(lo);
  const kept = [
    rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: lo, data: 1 }), 4),
    rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0),
  ];
  const everywhere = rig.endpoint();
  rig.bind(everywhere, 6000, '0.0.0.0');
  rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id: everywhere, backlog: 1n }));
  kept.push(rig.getRequest(everywhere, rig.endpoint()));
  busy(rig);
  fault(rig, FaultsCode.UNPLUG);
  assert.equal(kept.map(name), ['PENDING', 'PENDING', 'PENDING']);
  assert.is(rig.hca.claims.size, 1);
  rig.network.list[0] = hostInterface('lo', 1, ['127.0.0.1/8']);
  rig.kernel.ports.refresh(true);
  assert.is(s.WvIoEventFlags.decode(kept[0]!.output).flags, WvEvent.ADDRESS);
  sound(rig);
});

test('a fatal error: one request per instance reports it, verbs return FILE_FORCED_CLOSED until all are closed', () => {
  const rig = new KernelRig();
  const { ids, handles, ca, requests, verbs } = busy(rig);
  const second = rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: ids.device, data: 1 }), 4);
  assert.is(name(fault(rig, FaultsCode.FATAL)), 'SUCCESS');
  assert.is(name(verbs.fatal), 'SUCCESS');
  assert.is(name(verbs.port), 'PENDING');
  assert.is(s.WvIoEventFlags.decode(requests.device.output).flags, WvEvent.ERROR);
  for (const key of ['cq', 'getRequest', 'connect', 'disconnectNotify'] as const) {
    assert.is(name(requests[key]), 'FILE_FORCED_CLOSED', key);
  }
  assert.is(name(second), 'FILE_FORCED_CLOSED');
  for (const handle of handles) assert.is(rig.qpState(handle), QpState.ERROR);
  assert.is(name(rig.ioctl('PD_ALLOCATE', s.WvIoId.encode({ id: ids.device }))), 'FILE_FORCED_CLOSED');
  assert.is(name(openCa(rig)), 'FILE_FORCED_CLOSED', 'no new instance beside broken ones');
  assert.is(
    name(rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: ids.device, data: 1 }), 4)),
    'FILE_FORCED_CLOSED',
  );
  rig.close();
  assert.is(name(closeCa(ca)), 'SUCCESS');
  assert.is(name(verbs.port), 'CANCELED');
  assert.equal(rig.hca.objectCounts(), nothing);
  assert.is(name(openCa(rig)), 'SUCCESS', 'with the last instance closed the HCA works again');
  sound(rig);
});

test('the faults’ device file rejects unknown requests', () => {
  const rig = new KernelRig();
  for (const code of Object.values(FaultsCode)) {
    if (code !== FaultsCode.PLUG) assert.is(name(fault(rig, code, 1n)), 'NO_SUCH_DEVICE');
  }
  assert.is(name(fault(rig, FaultsCode.PLUG, 1n)), 'NO_SUCH_DEVICE');
  assert.is(name(fault(rig, 0x0022_240c)), 'PROCEDURE_NOT_FOUND');
  const file = rig.open('\\\\.\\NetworkDirectFaults').answer!.information;
  assert.is(name(rig.control(FaultsCode.FATAL, new Uint8Array(7), 0, file)), 'BUFFER_TOO_SMALL');
  assert.is(name(rig.open('\\\\.\\NetworkDirectFaults\\x')), 'OBJECT_NAME_NOT_FOUND');
  sound(rig);
});

test.run();
