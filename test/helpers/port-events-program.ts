/**
 * Runs in a separate network namespace: changes its interface in many ways and prints, as one line of JSON, the events that DEVICE_NOTIFY
 * and an endpoint reported.
 */
import { spawnSync } from 'node:child_process';
import {
  encodeSockaddr,
  IbatCode,
  IoctlCode,
  type Overlapped,
  openDeviceFile,
  readCounters,
  type SocketAddress,
  StatusError,
  sockaddrData,
  statusName,
} from '../../kernel-bridge/index.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { openProvider } from '../../winverbs/index.js';

const address: SocketAddress = { family: 4, address: '10.98.0.1', port: 0 };

function ip(line: string): string {
  const { status, stdout, stderr, error } = spawnSync('ip', line.split(' '));
  if (error) throw error;
  if (status !== 0) throw new Error(`ip ${line}: ${String(stderr).trim()}`);
  return String(stdout);
}

/** Brings a link up and waits for its carrier, which the OS detects and reports a moment later. */
function linkUp(name: string): void {
  ip(`link set ${name} up`);
  const end = performance.now() + 10_000;
  while (!ip('-o link show nd0').includes(' state UP ')) {
    if (performance.now() > end) throw new Error('nd0 did not get a carrier');
  }
}

ip('link add nd0 address 02:00:00:00:00:01 type veth peer name nd1');
// Disables the automatic link-local address, which would cause an additional event.
for (const name of ['nd0', 'nd1']) ip(`link set ${name} addrgenmode none`);
ip('address add 10.98.0.1/24 dev nd0');
ip('link set nd0 up');
linkUp('nd1');

const ibat = openDeviceFile('\\\\.\\ibat');
const asked = s.IbatIpToPortIn.encode({ version: 6, address: encodeSockaddr(address) });
const { caGuid: guid } = s.IbatPortRecord.decode(
  ibat.ioctl(IbatCode.IP_TO_PORT, asked, s.IbatPortRecord.size),
);
ibat.close();

const file = openDeviceFile('\\\\.\\WinVerbs');
const made = (code: number, input: Uint8Array): bigint => s.WvIoObject.decode(file.ioctl(code, input, 16)).id;
const openDevice = (): bigint => made(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({ guid }));

/** Waits for a device's next event. Returns its flags or the final status. */
function notify(id: bigint): Overlapped<number> {
  const input = s.WvIoId.encode({ id, data: 1 });
  return file.ioctlOverlapped(
    IoctlCode.DEVICE_NOTIFY,
    input,
    s.WvIoEventFlags.size,
    (output) => s.WvIoEventFlags.decode(output).flags,
  );
}

async function outcome(request: Overlapped<unknown>): Promise<unknown> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof StatusError) return statusName(error.status);
    throw error;
  }
}

/** Waits until a device has reported these flags, in one event or several. Also returns other flags. */
async function until(id: bigint, wanted: number): Promise<number> {
  let flags = 0;
  while ((flags & wanted) !== wanted) flags |= await notify(id);
  return flags;
}

const reported: Record<string, unknown> = {};
const watched = openDevice();

const first = notify(watched);
ip('address add 10.98.0.2/24 dev nd0');
reported.address = await first;

const second = notify(watched);
ip('link set nd0 address 02:00:00:00:00:77');
reported.linkAddress = await second;

// The device still has the same GUID.
const silent = openDevice();
ip('link set nd1 down');
reported.down = await until(watched, 2);
const port = (): number[] => {
  const input = s.WvIoDevicePortQuery.encode({ id: watched, portNumber: 1 });
  const output = file.ioctl(IoctlCode.DEVICE_PORT_QUERY, input, s.WvIoPortAttributes.size);
  const { state, activeMtu, gidTableLength } = s.WvIoPortAttributes.decode(output);
  return [state, activeMtu, gidTableLength];
};
reported.withoutCarrier = port();
ip('link set nd0 mtu 9000');
linkUp('nd1');
reported.up = await until(watched, 2);
ip('address del 10.98.0.2/24 dev nd0');
await until(watched, 4);
// All events since the device was opened, in one reply.
reported.accumulated = await notify(silent);
reported.withCarrier = port();

// IWVDevice::Notify: several pending requests, one canceled individually, all canceled, and events in between.
const provider = openProvider();
const device = provider.openDevice(guid);
const [oldest, cancelled, next] = [device.notify(1), device.notify(1), device.notify(1)];
cancelled.cancel();
reported.cancelled = await outcome(cancelled);
ip('address add 10.98.0.3/24 dev nd0');
reported.oldest = [await oldest, next.completed];
ip('address del 10.98.0.3/24 dev nd0');
reported.next = await next;
const none = [device.notify(1), device.notify(1)];
device.cancelOverlappedRequests();
reported.none = await Promise.all(none.map((one) => outcome(one)));
await notify(watched);
ip('address add 10.98.0.3/24 dev nd0');
await until(watched, 4);
ip('link set nd0 address 02:00:00:00:00:78');
await until(watched, 8);
reported.kept = await device.notify(1);
reported.noPort = await outcome(device.notify(2));

const endpoint = made(IoctlCode.EP_CREATE, s.WvIoEpCreate.encode({ epType: 0x106n }));
file.ioctl(
  IoctlCode.EP_BIND,
  s.WvIoEpBind.encode({ id: endpoint, address: sockaddrData(address) }),
  s.WvIoEpBind.size,
);
file.ioctl(IoctlCode.EP_LISTEN, s.WvIoEpListen.encode({ id: endpoint, backlog: 1n }), 0);
const other = made(IoctlCode.EP_CREATE, s.WvIoEpCreate.encode({ epType: 0x106n }));
const request = file.ioctlOverlapped(
  IoctlCode.EP_GET_REQUEST,
  s.WvIoEpGetRequest.encode({ id: endpoint, epId: other }),
  0,
  () => 'a request',
);
await notify(silent);
const waits = [notify(watched), notify(silent), request, device.notify(1)];
ip('link delete nd0');
reported.removed = await Promise.all(waits.map((one) => outcome(one)));
reported.afterwards = await outcome(device.notify(1));
reported.removing = readCounters().devices.removing;
file.close();
device.release();
provider.release();
reported.after = readCounters().devices.removing;
console.log(JSON.stringify(reported));
