import { IoctlCode } from '../ioctl/codes.js';
import { Capacity, EpType } from '../ioctl/constants.js';
import { WvIoEpCreate, WvIoObject } from '../ioctl/structs.js';

const idBytes = WvIoObject.size;
/** Endpoints that a file has made before it asks for more than one at a time: most programs need few. */
const usual = 16;

const connect = WvIoEpCreate.encode({ epType: BigInt(EpType.CONNECT) });

function isConnect(input: Uint8Array | null): boolean {
  return input?.length === connect.length && input.every((byte, index) => byte === connect[index]);
}

/**
 * Ids of connect endpoints that the kernel has promised. Whoever makes many endpoints gets them several at a time: an EP_CREATE with
 * room for more is answered with ids whose endpoints the kernel makes when they are first named, so that those which follow need
 * not ask. Each takes a place of the file's table from the start, and goes with the file.
 */
export class PromisedEndpoints {
  readonly #era: Int32Array;
  readonly #ended: () => boolean;
  #keptIn = 0;
  #made = 0;
  #ids: Uint8Array = new Uint8Array(0);
  #next = 0;

  /** `ended` is asked when a new era has come: the kernel's end begins one. */
  constructor(era: Int32Array, ended: () => boolean) {
    this.#era = era;
    this.#ended = ended;
  }

  /** The answer of an EP_CREATE; undefined: the kernel is to be asked. */
  take(code: number, input: Uint8Array | null, outputLength: number): Uint8Array | undefined {
    if (code !== IoctlCode.EP_CREATE || this.#next >= this.#ids.length) return undefined;
    if (outputLength !== idBytes || !isConnect(input)) return undefined;
    const era = Atomics.load(this.#era, 0);
    if (era !== this.#keptIn && this.#ended()) return undefined;
    this.#keptIn = era;
    this.#next += idBytes;
    return this.#ids.slice(this.#next - idBytes, this.#next);
  }

  /** Bytes of output to ask for instead of `outputLength`. */
  roomFor(code: number, input: Uint8Array | null, outputLength: number): number {
    if (code !== IoctlCode.EP_CREATE || outputLength !== idBytes || !isConnect(input)) return outputLength;
    this.#made = Math.min(this.#made + 1, usual + 1);
    return this.#made > usual ? Capacity.EP_CREATE_IDS * idBytes : outputLength;
  }

  /** Keeps what came beyond the answer that was asked for; answers that. */
  keep(output: Uint8Array): Uint8Array {
    if (output.length <= idBytes) return output;
    this.#ids = output;
    this.#next = idBytes;
    return output.slice(0, idBytes);
  }
}
