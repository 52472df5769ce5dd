import type { UmvBuffer } from '../../door/user-verbs.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { NativeBytes, SteadyMemory } from '../../windows/steady-memory.js';
import { resultOf } from './ib-status.js';
import { layouts, writeAddress } from './uvp-layouts.js';
import type { VendorHandle } from './vendor-queue-pair.js';

const { umvBuf } = layouts;
/** Size of the largest attributes of a hook, in bytes. */
const attributeBytes = Math.max(layouts.avAttr.size, layouts.uvpQpCreate.size, layouts.srqAttr.size);
const attributesAt = umvBuf.size;
const handleAt = attributesAt + Math.ceil(attributeBytes / 8) * 8;
const numberAt = handleAt + 8;
/** Maximum bytes that a hook exchanges with the driver, more than any known provider does. */
const mostProviderBytes = 1 << 20;

/** Arguments of hooks in native memory: `ci_umv_buf_t`, attributes, a handle and a number. Hooks do not nest, so one instance suffices. */
export class HookMemory {
  readonly #memory: SteadyMemory;
  /** Buffer for copies. It is referenced here, because only native code has its address during a copy. */
  #buffer: SteadyMemory | undefined = undefined;
  readonly umv: number;
  readonly attributes: number;
  readonly handle: number;
  readonly number: number;

  constructor(private readonly native: NativeBytes) {
    this.#memory = native.memory(numberAt + 8);
    this.umv = this.#memory.address;
    this.attributes = this.umv + attributesAt;
    this.handle = this.umv + handleAt;
    this.number = this.umv + numberAt;
  }

  /** The bytes at {@link attributes}, zeroed. */
  get attributeBytes(): Uint8Array {
    return this.#memory.bytes.subarray(attributesAt, handleAt).fill(0);
  }

  /** The same bytes after a hook has written them. */
  get attributesLeft(): Uint8Array {
    return this.#memory.bytes.subarray(attributesAt, handleAt);
  }

  get numberValue(): number {
    return this.#memory.words[numberAt / 4]!;
  }

  set numberValue(value: number) {
    this.#memory.words[numberAt / 4] = value;
  }

  /** The pointer that a function has written at {@link handle}. */
  get handleValue(): number {
    const { words } = this.#memory;
    return words[handleAt / 4]! + words[handleAt / 4 + 1]! * 2 ** 32;
  }

  set handleValue(value: number) {
    const { words } = this.#memory;
    words[handleAt / 4 + 1] = 0;
    writeAddress(words, handleAt / 4, value);
  }

  /** Zeroes everything before a pre hook. If the provider lacks the hook, the driver receives no bytes and the handle remains 0. */
  clear(): void {
    this.#memory.bytes.fill(0);
  }

  /** Reads the hook's bytes for the driver and its handle after a pre hook. */
  readUmv(umv: UmvBuffer, object?: VendorHandle): void {
    const { command, inputSize, outputSize, pInoutBuf } = umvBuf.decode(this.#memory.bytes);
    if (inputSize > mostProviderBytes || outputSize > mostProviderBytes) {
      throw new StatusError(
        Status.INTERNAL_ERROR,
        `The device's provider must exchange at most ${mostProviderBytes} bytes with the driver; got ${inputSize} of input and ${outputSize} of output.`,
      );
    }
    umv.command = command;
    umv.outputSize = outputSize;
    umv.address = pInoutBuf;
    if (inputSize > 0) {
      const sent = this.#bufferOf(inputSize);
      this.native.copy(sent.address, pInoutBuf, inputSize);
      umv.input = sent.bytes.slice(0, inputSize);
    }
    if (object !== undefined) object.address = this.handleValue;
  }

  #bufferOf(bytes: number): SteadyMemory {
    if (this.#buffer === undefined || this.#buffer.bytes.length < bytes)
      this.#buffer = this.native.memory(bytes);
    return this.#buffer;
  }

  /** Writes the driver's reply and the handle before a post hook. Returns the result that the hook is passed. */
  writeUmv(status: number, umv: UmvBuffer, object?: VendorHandle): number {
    this.clear();
    const { output } = umv;
    if (output.length > 0 && umv.address !== 0) {
      const reply = this.#bufferOf(output.length);
      reply.bytes.set(output);
      this.native.copy(umv.address, reply.address, Math.min(output.length, umv.outputSize));
    }
    umvBuf.encode(
      {
        command: umv.command,
        status: umv.status,
        inputSize: umv.input.length,
        outputSize: umv.outputSize,
        pInoutBuf: umv.address,
      },
      this.#memory.bytes,
    );
    this.handleValue = object?.address ?? 0;
    return resultOf(status);
  }
}
