/** Drivers for tests, from their source text. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type DeviceFile,
  type LoadDriverOptions,
  type LoadedDriver,
  loadDriver,
  type Overlapped,
  openDeviceFile,
  StatusError,
  statusName,
  unloadDriver,
} from '../../kernel-bridge/index.js';

/** A folder of sources. */
export class DriverFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'drivers-'));
  private files = 0;

  /** Creates a driver file with this source and a unique name. */
  source(text: string, ending = 'mjs'): string {
    const path = join(this.path, `driver${++this.files}.${ending}`);
    writeFileSync(path, text);
    return path;
  }

  /** A driver that creates the device `\\.\Box` and executes these statements in its entry. */
  box(body = ''): string {
    return this.source(`export const driverEntry = async (driver, kernel) => {
      const device = driver.createDevice('\\\\Device\\\\Box', ['\\\\DosDevices\\\\Box']);
      driver.routines.unload = () => {};
      ${body}
    };`);
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}

/** Loads a driver under the name `box`. */
export function loadBox(file: string, options: LoadDriverOptions = {}): Overlapped<LoadedDriver> {
  return loadDriver(file, { name: 'box', ...options });
}

export function openBox(): DeviceFile {
  return openDeviceFile('\\\\.\\Box');
}

/** The error of a failed request or call. */
export async function failure(asked: (() => unknown) | PromiseLike<unknown>): Promise<StatusError> {
  try {
    await (typeof asked === 'function' ? asked() : asked);
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('The call succeeded.');
}

const RUN_CODE = 0x0022_2000;

/** The beginning of an entry that opens an HCA. */
export const OPENED = `const hca = kernel.referenceHca(kernel.hcaOfAddress('127.0.0.1'));
  const layer = kernel.openAl(hca);
  const { verbs } = layer;
  const ca = await kernel.wait((irp) => verbs.ciOpenCa(layer.al, hca, 0, {}, irp));
  kernel.dereference(hca);
  const pd = await kernel.wait((irp) => verbs.ciAllocatePd(ca, irp));
  const cq = await kernel.wait((irp) => verbs.ciCreateCq(ca, 8, 0, {}, irp));
  const shape = { sendCq: cq, receiveCq: cq, sendDepth: 4, receiveDepth: 4, sendSge: 1, receiveSge: 1 };
  const qp = await kernel.wait((irp) => verbs.ciCreateQp(pd, shape, 0, {}, irp));`;

/** A driver that executes `body` when requested and returns `seen` as JSON. */
const asked = (drivers: DriverFolder, body: string): string =>
  drivers.box(`driver.onIoctl(${RUN_CODE}, (irp) => {
    irp.markPending();
    const seen = [];
    const tell = (answer) => {
      const bytes = new TextEncoder().encode(JSON.stringify(answer));
      irp.output.set(bytes);
      irp.complete(0, bytes.length);
    };
    const status = async (verb) => {
      seen.push(await new Promise((resolve) => {
        const own = kernel.call(verb, resolve);
        // This request would never complete.
        setTimeout(() => { if (!own.completed) { resolve('never'); own.cancel(); } }, 300);
      }));
    };
    const run = async () => { ${body} };
    run().then(() => tell(seen), (error) => tell(String(error)));
    return irp.returnStatus;
  }, 0, 4096);
  driver.routines.unload = () => {};`);

/** The values that such a driver has seen, with statuses as names. */
export async function seenBy(drivers: DriverFolder, body: string): Promise<unknown[]> {
  await loadBox(asked(drivers, body));
  const file = openBox();
  const seen = JSON.parse(new TextDecoder().decode(file.ioctl(RUN_CODE, null, 4096))) as unknown[];
  file.close();
  await unloadDriver('box');
  if (!Array.isArray(seen)) throw new Error(String(seen));
  return seen.map((one) => (typeof one === 'number' && one >= 0 ? statusName(one) : one));
}
