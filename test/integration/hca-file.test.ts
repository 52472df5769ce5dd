// The file of an HCA through the real channel: verbs as IOCTLs, partial outputs, and requests that are pending when the HCA is removed.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type DeviceFile,
  injectDeviceFault,
  type Overlapped,
  openDeviceFile,
  readCounters,
  readInterfaces,
} from '../../kernel-bridge/index.js';
import * as ioctl from '../../kernel-bridge/ioctl/index.js';
import type { StatusError } from '../../kernel-bridge/ioctl/status.js';
import { outcomeName, refusal } from '../helpers/outcome.js';

const { HcaFileCode, IoctlCode } = ioctl;

/** The HCA of the loopback interface, which every host has. */
function loopback(): bigint {
  const lo = readInterfaces().find(({ name }) => name === 'lo');
  assert.ok(lo, 'the interface lo does not exist');
  return lo.guid;
}

function opened(guid: bigint): { file: DeviceFile; id: bigint } {
  const file = openDeviceFile(ioctl.hcaFileName(guid));
  const answer = file.ioctl(IoctlCode.DEVICE_OPEN, ioctl.WvIoDeviceOpen.encode({}), ioctl.WvIoId.size);
  return { file, id: ioctl.WvIoId.decode(answer).id };
}

function fails(code: string, run: () => unknown): StatusError {
  const error = refusal(run);
  assert.is(error.code, code);
  return error;
}

test('attributes are returned completely, or truncated with an error that reports the required size', () => {
  const { file, id } = opened(loopback());
  const input = ioctl.WvIoObject.encode({ id });
  const { output } = fails('BUFFER_OVERFLOW', () => file.ioctl(HcaFileCode.CA_QUERY, input, 4));
  const size = new DataView(output!.buffer, output!.byteOffset).getUint32(0, true);
  const whole = file.ioctl(HcaFileCode.CA_QUERY, input, size);
  assert.is(ioctl.IbCaAttr.decode(whole).size, size);
  assert.is(ioctl.IbCaAttr.decode(whole).portCount, 1);
  const modify = ioctl.IbIoCaModify.encode({ id, flags: 1 });
  assert.is(fails('ACCESS_DENIED', () => file.ioctl(HcaFileCode.CA_MODIFY, modify, 0)).output, undefined);
  fails('INVALID_DEVICE_REQUEST', () => file.ioctl(IoctlCode.GUID_QUERY, null, 64));
  file.close();
});

test('a name without an HCA is rejected, and the error shows the valid form', () => {
  assert.match(fails('NO_SUCH_DEVICE', () => openDeviceFile(ioctl.hcaFileName(0x77n))).message, /CA GUID/);
});

test('objects belong to the file and are destroyed with it; pending requests end with the HCA', async () => {
  const before = readCounters().objects;
  const guid = loopback();
  const { file, id } = opened(guid);
  const other = opened(guid);
  const pd = ioctl.WvIoId.decode(file.ioctl(IoctlCode.PD_ALLOCATE, ioctl.WvIoId.encode({ id }), 16)).id;
  fails('NOT_FOUND', () => other.file.ioctl(IoctlCode.PD_DEALLOCATE, ioctl.WvIoObject.encode({ id: pd }), 0));
  assert.is(readCounters().objects.pd, before.pd + 1);
  const wait = (code: number, input: Uint8Array) => file.ioctlOverlapped(code, input, 4, () => undefined);
  const port = (): Overlapped<unknown> => wait(IoctlCode.DEVICE_NOTIFY, ioctl.WvIoId.encode({ id, data: 1 }));
  const fatal = (): Overlapped<unknown> => wait(HcaFileCode.CA_FATAL_EVENT, ioctl.WvIoObject.encode({ id }));
  const cancelled = [port(), fatal()];
  const lost = [port(), fatal(), port()];
  for (const request of cancelled) request.cancel();
  assert.equal(await Promise.all(cancelled.map(outcomeName)), ['CANCELED', 'CANCELED']);
  injectDeviceFault(guid, 'unplug');
  assert.equal(await Promise.all(lost.map(outcomeName)), [
    'DEVICE_REMOVED',
    'DEVICE_REMOVED',
    'DEVICE_REMOVED',
  ]);
  fails('NO_SUCH_DEVICE', () => openDeviceFile(ioctl.hcaFileName(guid)));
  injectDeviceFault(guid, 'plug');
  file.close();
  assert.is(readCounters().devices.removing, 1, 'the other file is still there');
  other.file.close();
  assert.is(readCounters().devices.removing, 0);
  assert.equal(readCounters().objects, before);
  const again = opened(guid);
  const closed = again.file.ioctlOverlapped(
    HcaFileCode.CA_FATAL_EVENT,
    ioctl.WvIoObject.encode({ id: again.id }),
    0,
    () => undefined,
  );
  again.file.close();
  assert.is(await outcomeName(closed), 'CANCELED');
});

test.run();
