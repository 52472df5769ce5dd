import type { UmvBuffer } from '../../door/user-verbs.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { NativeBytes, SteadyMemory } from '../../windows/steady-memory.js';
import { resultOf } from './ib-status.js';
import { layouts, writeAddress } from './uvp-layouts.js';
import type { VendorHandle } from './vendor-queue-pair.js';

const { umvBuf } = layouts;
/** The largest of the attributes that a hook takes. */
const attributeBytes = Math.max(layouts.avAttr.size, layouts.uvpQpCreate.size, layouts.srqAttr.size);
const attributesAt = umvBuf.size;
const handleAt = attributesAt + Math.ceil(attributeBytes / 8) * 8;
const numberAt = handleAt + 8;
/** More than any provider sends. */
const mostProviderBytes = 1 << 20;

/** Arguments of hooks in native memory: `ci_umv_buf_t`, attributes, a handle and a number. Hooks do not nest, so one serves all. */
export class HookMemory {
  readonly #memory: SteadyMemory;
  /** Held here, because during a copy native code alone has its address. */
  #bytes: SteadyMemory | undefined = undefined;
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

  /** The same, as a hook has left them. */
  get attributesLeft(): Uint8Array {
    return this.#memory.bytes.subarray(attributesAt, handleAt);
  }

  get numberValue(): number {
    return this.#memory.words[numberAt / 4]!;
  }

  set numberValue(value: number) {
    this.#memory.words[numberAt / 4] = value;
  }

  /** The pointer that a function has left at {@link handle}. */
  get handleValue(): number {
    const { words } = this.#memory;
    return words[handleAt / 4]! + words[handleAt / 4 + 1]! * 2 ** 32;
  }

  set handleValue(value: number) {
    const { words } = this.#memory;
    words[handleAt / 4 + 1] = 0;
    writeAddress(words, handleAt / 4, value);
  }

  /** Before a pre hook: no bytes, and no handle yet. A hook that the provider lacks leaves it so. */
  clear(): void {
    this.#memory.bytes.fill(0);
  }

  /** After a pre hook: what it sends to the driver, and its handle. */
  takeUmv(umv: UmvBuffer, made?: VendorHandle): void {
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
      const sent = this.#room(inputSize);
      this.native.copy(sent.address, pInoutBuf, inputSize);
      umv.input = sent.bytes.slice(0, inputSize);
    }
    if (made !== undefined) made.address = this.handleValue;
  }

  #room(bytes: number): SteadyMemory {
    if (this.#bytes === undefined || this.#bytes.bytes.length < bytes)
      this.#bytes = this.native.memory(bytes);
    return this.#bytes;
  }

  /** Before a post hook: what the driver has answered, and the handle. Answers the result that the hook is told. */
  giveUmv(status: number, umv: UmvBuffer, made?: VendorHandle): number {
    this.clear();
    const { output } = umv;
    if (output.length > 0 && umv.address !== 0) {
      const answer = this.#room(output.length);
      answer.bytes.set(output);
      this.native.copy(umv.address, answer.address, Math.min(output.length, umv.outputSize));
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
    this.handleValue = made?.address ?? 0;
    return resultOf(status);
  }
}
