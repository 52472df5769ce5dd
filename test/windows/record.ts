// Records the library's requests to the soft kernel and their replies: `record.js FILE`. Every IOCTL is included. Those that this program
// does not use are sent with patterns of bytes.
import {
  type DeviceFile,
  hcaFileName,
  hcaFileTable,
  ibatTable,
  ioctlTable,
  type NamedIoctlRow,
  openDeviceFile,
} from '../../kernel-bridge/index.js';
import { loadUserVerbs } from '../../kernel-bridge/uvp/index.js';
import { WVProvider } from '../../winverbs/provider.js';
import { ADDRESS, connect, openSide, type Side } from '../helpers/loopback.js';
import { type Door, type RecordedRequest, RecordingFile, writeRequests } from './requests.js';
import { IBAT, WINVERBS } from './standin.js';

const requests: RecordedRequest[] = [];
const doorOf = (name: string): Door => (name === IBAT ? 'ibat' : name === WINVERBS ? 'winverbs' : 'hca');
const openFile = (name: string): DeviceFile =>
  new RecordingFile(openDeviceFile(name), doorOf(name), requests);
const ignore = async (request: PromiseLike<unknown>): Promise<void> => {
  try {
    await request;
  } catch {
    // The status is recorded.
  }
};

/** Queries a device and creates its objects. */
async function device({ device, pd, cq, qp }: Side): Promise<void> {
  device.query();
  device.queryPort(1);
  device.findGid(1, device.queryGid(1, 0));
  device.queryPkey(1, 0);
  const events = device.notify(1);
  device.cancelOverlappedRequests();
  await ignore(events);
  pd.allocateMemoryWindow().release();
  const memory = pd.registerMemory(new Uint8Array(100), 0);
  pd.deregisterMemory(memory);
  await pd.deregisterMemoryOverlapped(await pd.registerMemoryOverlapped(new Uint8Array(100), 0));
  const srq = pd.createSharedReceiveQueue(8, 2, 1);
  srq.query();
  srq.modify(16, 2);
  const limit = srq.notify();
  srq.cancelOverlappedRequests();
  await ignore(limit);
  srq.release();
  cq.resize(128);
  const any = cq.notify('any');
  cq.cancelOverlappedRequests();
  await ignore(any);
  qp.query();
  qp.cancelOverlappedRequests();
}

async function connections(provider: WVProvider): Promise<void> {
  const a = openSide(provider);
  const b = openSide(provider);
  await device(a);
  await connect(provider, a, b);
  const ended = b.ep.notifyDisconnect();
  await ignore(a.ep.disconnect());
  await ignore(ended);
  b.ep.cancelOverlappedRequests();
  a.release();
  b.release();
}

/** Sends every IOCTL of the tables with patterns of bytes. */
async function patterns(guid: bigint): Promise<void> {
  const files: [DeviceFile, readonly NamedIoctlRow[]][] = [
    [openFile(WINVERBS), ioctlTable],
    [openFile(IBAT), ibatTable],
    [openFile(hcaFileName(guid)), hcaFileTable],
  ];
  for (const [file, rows] of files) {
    for (const { code, input, output } of rows) {
      const bytes = Uint8Array.from({ length: (input?.size ?? 0) + 24 }, (_, i) => (i * 37 + code) & 0xff);
      const room = (output?.size ?? 0) + 24;
      for (const given of [bytes, null]) {
        const request = file.ioctlOverlapped(code, given, room, () => undefined);
        request.cancel();
        await ignore(request);
      }
      try {
        file.ioctl(code, bytes.subarray(0, 4), room);
      } catch {
        // The status is recorded.
      }
    }
    file.close();
  }
}

const provider = new WVProvider({ openFile, loadUserVerbs });
provider.queryDeviceList();
const { deviceGuid } = provider.translateAddress(ADDRESS);
provider.queryDevice(deviceGuid);
provider.resolvePath(ADDRESS);
await connections(provider);
await patterns(deviceGuid);
provider.release();
writeRequests(process.argv[2]!, requests);
