import { IoctlCode } from '../ioctl/codes.js';
import { Capacity, EpType } from '../ioctl/constants.js';
import { WvIoEpCreate, WvIoObject } from '../ioctl/structs.js';

const idBytes = WvIoObject.size;
/** A file that has made more connect endpoints than this requests ids in batches. Most programs need fewer. */
const singleRequests = 16;

const connect = WvIoEpCreate.encode({ epType: BigInt(EpType.CONNECT) });

function isConnect(input: Uint8Array | null): boolean {
  return input?.length === connect.length && input.every((byte, index) => byte === connect[index]);
}

/**
 * Ids of connect endpoints, reserved in batches so that a program with many endpoints needs few EP_CREATE requests. The kernel
 * answers an EP_CREATE whose output has room for several ids with as many. It makes such an endpoint when a request first names its
 * id. Each id takes a place in the file's table from the start, and the kernel frees it with the file.
 */
export class EndpointIdPool {
  readonly #cacheEpoch: Int32Array;
  readonly #ended: () => boolean;
  #epoch = 0;
  #made = 0;
  #ids: Uint8Array = new Uint8Array(0);
  #next = 0;

  /** `ended` is called after the cache epoch has changed: the kernel changes it when it ends. */
  constructor(cacheEpoch: Int32Array, ended: () => boolean) {
    this.#cacheEpoch = cacheEpoch;
    this.#ended = ended;
  }

  /** The answer to an EP_CREATE, from the pool; undefined: send the request to the kernel. */
  take(code: number, input: Uint8Array | null, outputLength: number): Uint8Array | undefined {
    if (code !== IoctlCode.EP_CREATE || this.#next >= this.#ids.length) return undefined;
    if (outputLength !== idBytes || !isConnect(input)) return undefined;
    const epoch = Atomics.load(this.#cacheEpoch, 0);
    if (epoch !== this.#epoch && this.#ended()) return undefined;
    this.#epoch = epoch;
    this.#next += idBytes;
    return this.#ids.slice(this.#next - idBytes, this.#next);
  }

  /** The output length to request in place of `outputLength`, in bytes: room for a batch where the file makes many endpoints. */
  roomFor(code: number, input: Uint8Array | null, outputLength: number): number {
    if (code !== IoctlCode.EP_CREATE || outputLength !== idBytes || !isConnect(input)) return outputLength;
    this.#made = Math.min(this.#made + 1, singleRequests + 1);
    return this.#made > singleRequests ? Capacity.EP_CREATE_IDS * idBytes : outputLength;
  }

  /** Puts all ids but the first into the pool; returns the first. */
  fill(output: Uint8Array): Uint8Array {
    if (output.length <= idBytes) return output;
    this.#ids = output;
    this.#next = idBytes;
    return output.slice(0, idBytes);
  }
}
