import { IoctlCode } from '../ioctl/codes.js';
import { epAttributesRoom, WvIoEpAttributes } from '../ioctl/structs.js';

const { EP_QUERY, EP_CONNECT, EP_GET_REQUEST } = IoctlCode;

/** All requests that name an endpoint first in their input. */
const ofEndpoint: ReadonlySet<number> = new Set(
  Object.entries(IoctlCode).flatMap(([name, code]) => (/^EP_(?!CREATE)/.test(name) ? [code] : [])),
);

interface Told {
  /** When the request was sent. */
  readonly era: number;
  /** Once it has succeeded. */
  output: Uint8Array | undefined;
}

/** The id at this place; -1 for what the kernel gives no object. */
function idAt(input: Uint8Array | null, at: number): number {
  if (input === null || input.length < at + 8 || input[at + 7] !== 0 || (input[at + 6] ?? 0) > 15) return -1;
  let id = 0;
  for (let i = 6; i >= 0; i--) id = id * 256 + input[at + i]!;
  return id;
}

/**
 * Whoever has connected, or has got a request, asks for the endpoint's attributes next: what the peer said is among them. The
 * kernel tells them with the end of EP_CONNECT and EP_GET_REQUEST where there is room, and they are kept for one EP_QUERY: as long
 * as nothing else was asked of the endpoint, and no new era has come, which the kernel begins when they change otherwise.
 */
export class ToldAttributes {
  readonly #era: Int32Array;
  readonly #told = new Map<number, Told>();

  constructor(era: Int32Array) {
    this.#era = era;
  }

  /** Before a request is sent: what was told before does not count any more. */
  forget(code: number, input: Uint8Array | null): void {
    if (this.#told.size > 0 && code !== EP_QUERY && ofEndpoint.has(code)) this.#told.delete(idAt(input, 0));
  }

  /** Bytes of output for a request that asks for none; 0: the kernel tells nothing. */
  roomFor(code: number): number {
    return code === EP_CONNECT || code === EP_GET_REQUEST ? epAttributesRoom : 0;
  }

  /** Before a request is sent that {@link roomFor} has room for. Answers what is to be done with its output. */
  expect(code: number, input: Uint8Array | null): (output: Uint8Array) => void {
    const id = idAt(input, code === EP_GET_REQUEST ? 8 : 0);
    const told: Told = { era: Atomics.load(this.#era, 0), output: undefined };
    if (id > 0) this.#told.set(id, told);
    return (output) => {
      if (this.#told.get(id) !== told) return;
      if (output.length >= WvIoEpAttributes.size) told.output = output;
      else this.#told.delete(id);
    };
  }

  /** The answer of an EP_QUERY; undefined: the kernel is to be asked. */
  take(code: number, input: Uint8Array | null, outputLength: number): Uint8Array | undefined {
    if (code !== EP_QUERY || outputLength !== epAttributesRoom || this.#told.size === 0) return undefined;
    const id = idAt(input, 0);
    const told = this.#told.get(id);
    if (told?.output === undefined) return undefined;
    this.#told.delete(id);
    return told.era === Atomics.load(this.#era, 0) ? told.output : undefined;
  }
}
