/** The I/O manager: turns requests of a channel into IRPs, and completed IRPs into replies. */
import {
  ChannelMajor,
  type ChannelRequest,
  type NativeChannelServer,
} from '../../hca/request-channel-binding.js';
import { Status, statusHex } from '../../ioctl/status.js';
import {
  DeviceNamespace,
  type DeviceObject,
  FileObject,
  maxReparse,
  STATUS_REPARSE,
} from './device-object.js';
import { Irp, IrpMajor, type RequestorMode } from './irp.js';
import { assertPassive, DriverFault } from './irql.js';
import { WorkItems } from './work-items.js';

/** Maximum number of files that a program may have open in a kernel; those of kernel clients do not count. */
export const MOST_FILES = 65_536;

/** Maximum number of requests served per turn of the event loop, so that timers and HCA events are not delayed. */
const requestsPerTurn = 256;

/** A key for (slot, serial) that fits a double exactly: slot numbers are small, serials have 32 bits. */
function slotKey(slot: number, serial: number): number {
  return slot * 0x1_0000_0000 + (serial >>> 0);
}

const names = 'the devices are \\\\.\\WinVerbs, \\\\.\\ibat and \\Device\\ibal\\<CA GUID>';

/** Reasons why a name cannot be opened, for messages. */
const openProblems: ReadonlyMap<number, string> = new Map([
  [Status.OBJECT_NAME_NOT_FOUND, `no device has this name; ${names}`],
  [Status.OBJECT_NAME_INVALID, `this is not a valid device name; ${names}`],
  [Status.NO_SUCH_DEVICE, 'no HCA has this CA GUID (16 hexadecimal digits); query the list of GUIDs'],
  [Status.DEVICE_REMOVED, 'the device is being removed'],
  [Status.INSUFFICIENT_RESOURCES, 'too many files are open; close some'],
  [Status.DEVICE_NOT_READY, 'its driver is still being loaded; wait until it is loaded'],
]);

const noBytes = new Uint8Array(0);

/** The output of a completed IOCTL, by NTSTATUS severity (bits 31:30): none for an error, possibly some for a warning (BUFFER_OVERFLOW). */
function answeredBytes(irp: Irp): Uint8Array {
  const { status, information = 0, outputBytes = information } = irp.ioStatus;
  const length = status >>> 30 === 3 ? 0 : Math.min(outputBytes, irp.outputCapacity);
  if (length === 0) return noBytes;
  const { output } = irp;
  return length === output.length ? output : output.subarray(0, length);
}

/** The I/O manager's counters. */
export interface IoCounters {
  requests: number;
  /** Violations of rules by drivers; 0 in a correct kernel. */
  driverFaults: number;
  /** IRPs that a driver had not completed when their file closed; 0 in a correct kernel. */
  abandonedIrps: number;
}

export class IoManager {
  readonly namespace = new DeviceNamespace();
  readonly counters: IoCounters = { requests: 0, driverFaults: 0, abandonedIrps: 0 };
  private readonly files = new Map<number, FileObject>();
  /** Files of kernel clients, which requests of the channel cannot refer to. */
  private readonly kernelFiles = new Set<FileObject>();
  private readonly inFlight = new Map<number, Irp>();
  private nextFileId = 1;
  /** Public for tests. */
  mostFiles = MOST_FILES;
  /** Code of drivers that may block. */
  readonly work = new WorkItems((item) => this.contain(item));
  /** Called for driver faults, for diagnosis. */
  onFault: (fault: DriverFault) => void = () => {};
  /** Called when the channel's user side is gone and all of its files are closed. */
  onChannelClosed: () => void = () => {};

  constructor(readonly server: NativeChannelServer) {}

  get openFiles(): number {
    return this.files.size;
  }

  /** Number of open files of kernel clients. */
  get openKernelFiles(): number {
    return this.kernelFiles.size;
  }

  /** The open files, for diagnosis. */
  get fileObjects(): FileObject[] {
    return [...this.files.values()];
  }

  get pendingRequests(): number {
    return this.inFlight.size;
  }

  /** Serves pending requests. Returns true if there are more, and the caller should call again after other work. */
  serve(): boolean {
    for (let n = 0; n < requestsPerTurn; n++) {
      const request = this.server.take();
      if (!request) return false;
      this.handle(request);
      this.work.run();
    }
    return true;
  }

  /** Serves one request, but not the work items that it queues. Public for tests. */
  handle(request: ChannelRequest): void {
    this.counters.requests++;
    switch (request.major) {
      case ChannelMajor.create:
        this.create(request);
        break;
      case ChannelMajor.close:
        if (request.fileId !== 0) {
          this.close(request);
          break;
        }
        this.closeAll();
        if (request.slot >= 0) this.answer(request, Status.SUCCESS);
        else this.onChannelClosed();
        break;
      case ChannelMajor.deviceControl:
        this.deviceControl(request);
        break;
      case ChannelMajor.cancel:
        this.cancel(request.slot, request.serial);
        break;
      default:
        this.answer(request, Status.INVALID_DEVICE_REQUEST);
    }
  }

  private answer(
    request: { slot: number; serial: number },
    status: number,
    information = 0,
    output: Uint8Array | null = null,
  ): void {
    this.server.complete(request.slot, request.serial, status, information, output);
  }

  // ── create ──────────────────────────────────────────────────────────────────────────────────────────────

  private create(request: ChannelRequest): void {
    const name = new TextDecoder().decode(request.input);
    const fail = (status: number): void => {
      const sentence = new TextEncoder().encode(
        `cannot open "${name.slice(0, 200)}": ${
          openProblems.get(status) ?? `the driver refused with status ${statusHex(status)}`
        }`,
      );
      this.answer(request, status, sentence.length, sentence);
    };
    if (this.files.size >= this.mostFiles) {
      fail(Status.INSUFFICIENT_RESOURCES);
      return;
    }
    this.open(name, 'user', maxReparse, fail, (file) => {
      this.files.set(file.id, file);
      this.answer(request, Status.SUCCESS, file.id);
    });
  }

  private open(
    name: string,
    requestorMode: RequestorMode,
    budget: number,
    fail: (status: number) => void,
    done: (file: FileObject) => void,
  ): void {
    assertPassive('opening a file');
    const resolved = this.namespace.resolve(name);
    if (typeof resolved === 'number') {
      fail(resolved);
      return;
    }
    const { device, relativeName } = resolved;
    if (device.references.ending) {
      fail(Status.DEVICE_REMOVED);
      return;
    }
    device.references.acquire();
    device.driver.openFiles++;
    const file = new FileObject(this.nextFileId++, device, relativeName);
    const irp = new Irp({
      major: IrpMajor.create,
      requestorMode,
      fileObject: file,
      onComplete: ({ ioStatus, reparseName }) => {
        if (ioStatus.status === Status.SUCCESS) return done(file);
        this.leave(device);
        if (ioStatus.status !== STATUS_REPARSE) return fail(ioStatus.status);
        if (reparseName === undefined || budget === 0) return fail(Status.OBJECT_NAME_INVALID);
        this.open(reparseName, requestorMode, budget - 1, fail, done);
      },
    });
    this.call(irp, () => device.driver.dispatch.create(file, irp));
  }

  /** Called when a file of the device is closed, or its open has failed. */
  private leave({ references, driver }: DeviceObject): void {
    references.release();
    if (--driver.openFiles === 0) driver.onIdle();
  }

  // ── close ───────────────────────────────────────────────────────────────────────────────────────────────

  private close(request: ChannelRequest): void {
    const file = this.files.get(request.fileId);
    if (file) this.closeFile(file);
    this.answer(request, file ? Status.SUCCESS : this.missing(request.fileId));
  }

  /** Closes a file: completes its pending requests, destroys its objects, and releases its device. */
  closeFile(file: FileObject): void {
    assertPassive('closing a file');
    if (file.closing) throw new DriverFault('a file was closed twice');
    file.closing = true;
    this.files.delete(file.id);
    this.kernelFiles.delete(file);
    const dispatch = file.device.driver.dispatch;
    this.contain(() => dispatch.cleanup(file));
    // The cleanup should have completed all requests. Any others are cancelled, or completed on behalf of the driver.
    for (const irp of [...file.outstanding]) {
      this.contain(() => irp.cancel());
      if (!irp.completed) {
        this.counters.abandonedIrps++;
        irp.setCancelRoutine(undefined);
        this.contain(() => irp.complete(Status.CANCELED));
      }
    }
    this.contain(() => dispatch.close(file));
    this.leave(file.device);
  }

  /** Closes every file, because the user side is gone. */
  closeAll(): void {
    for (const file of [...this.files.values()]) this.closeFile(file);
  }

  /** Ids are never reused: an id issued before belongs to a closed file, any other id to none. */
  private missing(fileId: number): number {
    return fileId > 0 && fileId < this.nextFileId ? Status.FILE_CLOSED : Status.INVALID_HANDLE;
  }

  // ── device control ──────────────────────────────────────────────────────────────────────────────────────

  private deviceControl(request: ChannelRequest): void {
    const file = this.files.get(request.fileId);
    if (!file) {
      this.answer(request, this.missing(request.fileId));
      return;
    }
    const { slot, serial } = request;
    const key = slotKey(slot, serial);
    let pended = false;
    const irp = new Irp({
      major: IrpMajor.deviceControl,
      requestorMode: 'user',
      fileObject: file,
      controlCode: request.code,
      input: request.input,
      outputLength: request.outputLength,
      native: { slot, serial },
      onComplete: (completed) => {
        if (pended) {
          this.inFlight.delete(key);
          file.outstanding.delete(completed);
        }
        const bytes = answeredBytes(completed);
        this.answer(request, completed.ioStatus.status, bytes.length, bytes.length > 0 ? bytes : null);
        completed.endOutput();
      },
    });
    this.call(irp, () => file.device.driver.dispatch.deviceControl(file, irp));
    // Most requests have completed by now, and none could be cancelled before.
    if (irp.completed) return;
    pended = true;
    this.inFlight.set(key, irp);
    file.outstanding.add(irp);
  }

  /** The IRP of a channel request that has not completed. */
  find(slot: number, serial: number): Irp | undefined {
    return this.inFlight.get(slotKey(slot, serial));
  }

  private cancel(slot: number, serial: number): void {
    const irp = this.find(slot, serial);
    if (irp) this.contain(() => irp.cancel());
  }

  // ── rules ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Calls a driver with an IRP. Afterwards the IRP is pending or completed, whatever the driver does. */
  private call(irp: Irp, routine: () => number): void {
    this.contain(() => irp.dispatch(routine));
    if (irp.state === 'dispatched' || irp.state === 'marked') {
      irp.setCancelRoutine(undefined);
      this.contain(() => irp.complete(Status.INTERNAL_ERROR));
    }
  }

  /** Runs code of a driver. An exception is reported as a fault and does not propagate. */
  contain(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.counters.driverFaults++;
      this.onFault(error instanceof DriverFault ? error : new DriverFault(String(error), { cause: error }));
    }
  }

  // ── kernel clients ──────────────────────────────────────────────────────────────────────────────────────

  /**
   * Opens a file for a kernel client, which closes it with {@link closeFile}. Returns a status on failure;
   * DEVICE_NOT_READY if its driver does not open it before this returns.
   */
  openFile(name: string): FileObject | number {
    let opened: FileObject | number = Status.DEVICE_NOT_READY;
    let waits = true;
    const failed = (status: number): void => {
      opened = status;
    };
    this.open(name, 'kernel', maxReparse, failed, (file) => {
      this.kernelFiles.add(file);
      if (waits) opened = file;
      // The file is not returned to anyone.
      else this.work.queue(() => this.closeFile(file));
    });
    waits = false;
    return opened;
  }

  /**
   * The device with a name, for a kernel client, with a reference that the client releases. Opens a file, because the
   * name may be reparsed, and closes it again (IoGetDeviceObjectPointer).
   */
  reference(name: string): DeviceObject | number {
    const file = this.openFile(name);
    if (typeof file === 'number') return file;
    file.device.references.acquire();
    this.closeFile(file);
    return file.device;
  }

  /**
   * Sends an IOCTL of a kernel client on its file (IoBuildDeviceIoControlRequest), always in kernel mode. `done`
   * receives the status, the output and IoStatus.Information. The IRP may be cancelled.
   */
  request(
    file: FileObject,
    controlCode: number,
    input: Uint8Array,
    outputLength: number,
    done: (status: number, output: Uint8Array, information: number) => void,
  ): Irp {
    if (file.closing) throw new DriverFault('a request on a closed file');
    const irp = new Irp({
      major: IrpMajor.deviceControl,
      requestorMode: 'kernel',
      fileObject: file,
      controlCode,
      input: input.slice(),
      outputLength,
      onComplete: (completed) => {
        file.outstanding.delete(completed);
        const { status, information = 0 } = completed.ioStatus;
        done(status, answeredBytes(completed), information);
      },
    });
    file.outstanding.add(irp);
    this.call(irp, () => file.device.driver.dispatch.deviceControl(file, irp));
    return irp;
  }
}
