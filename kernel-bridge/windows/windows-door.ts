import { Status, StatusError, statusText } from '../ioctl/status.js';
import { CompletionPort } from './completion-port.js';
import { type RequestBlock, RequestMemory } from './request-memory.js';
import { type Address, type Handle, loadNative, type Native } from './win32.js';

/** GENERIC_READ, GENERIC_WRITE, SYNCHRONIZE. */
const access = 0xc010_0000;
const OBJ_CASE_INSENSITIVE = 0x40;
const unicodeStringSize = 16;
const objectAttributesSize = 48;

/**
 * How long a blocking wait stays in native code, in ms. Between two such waits, `worker.terminate()` can end the thread,
 * because it interrupts JavaScript but not native code.
 */
const sliceMs = 100;

/** State shared by the Windows files of one thread. */
export class WindowsDoor {
  readonly memory: RequestMemory;
  readonly port: CompletionPort;
  /** An IO_STATUS_BLOCK for calls whose result is not needed. */
  readonly scratch: Address;
  readonly #slice: Address;

  constructor(readonly native: Native) {
    this.memory = new RequestMemory(native);
    this.port = new CompletionPort(native);
    const { address, bytes } = native.allocate(32);
    this.scratch = address;
    this.#slice = address + 16;
    // Relative times are negative, in units of 100 ns.
    new DataView(bytes.buffer, bytes.byteOffset).setBigInt64(16, BigInt(-sliceMs * 10_000), true);
  }

  /**
   * Opens a device by its native name.
   *
   * @throws StatusError with the status of Windows
   */
  open(name: string): Handle {
    const text = Buffer.from(name, 'utf16le');
    const { address, bytes, free } = this.native.allocate(
      32 + unicodeStringSize + objectAttributesSize + text.length,
    );
    // The handle, an IO_STATUS_BLOCK, a UNICODE_STRING, OBJECT_ATTRIBUTES, and the name.
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const stringAt = 32;
    const attributesAt = stringAt + unicodeStringSize;
    const textAt = attributesAt + objectAttributesSize;
    view.setUint16(stringAt, text.length, true);
    view.setUint16(stringAt + 2, text.length, true);
    view.setBigUint64(stringAt + 8, BigInt(address + textAt), true);
    view.setUint32(attributesAt, objectAttributesSize, true);
    view.setBigUint64(attributesAt + 16, BigInt(address + stringAt), true);
    view.setUint32(attributesAt + 24, OBJ_CASE_INSENSITIVE, true);
    bytes.set(text, textAt);
    const status = this.native.createFile(address, access, address + attributesAt, address + 16);
    const handle = view.getUint32(0, true);
    free();
    if (status !== Status.SUCCESS) throw new StatusError(status, statusText(status));
    this.native.own(handle);
    if (!this.port.attach(handle)) {
      this.native.close(handle);
      throw new StatusError(Status.NOT_SUPPORTED, 'The device does not support overlapped requests.');
    }
    return handle;
  }

  /** Blocks until the request has completed. */
  wait(block: RequestBlock): void {
    while (block.status === Status.PENDING) this.waitForSlice(block.event);
  }

  /** Blocks until the event is set or a time slice has passed. */
  waitForSlice(event: Handle): void {
    this.native.waitForSingleObject(event, this.#slice);
  }
}

let door: WindowsDoor | undefined;

/** Returns the door of this thread. */
export function windowsDoor(): WindowsDoor {
  door ??= new WindowsDoor(loadNative());
  return door;
}
