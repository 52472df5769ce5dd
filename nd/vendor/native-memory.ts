import {
  type MemoryPin,
  memoryPins,
  type OverlappedObject,
} from '../../kernel-bridge/windows/nd-provider/index.js';
import type { Overlapped, WvMemoryRegion } from '../../winverbs/index.js';
import { registrableBytes } from '../../winverbs/memory-region.js';
import { Nd2MrFlag } from '../spi/v2.js';

/** Flags of the SPI. The other flags are additions of this library and have no effect here. */
const PROVIDER_FLAGS =
  Nd2MrFlag.ALLOW_LOCAL_WRITE |
  Nd2MrFlag.ALLOW_REMOTE_READ |
  Nd2MrFlag.ALLOW_REMOTE_WRITE |
  Nd2MrFlag.RDMA_READ_SINK;

let pins: ReturnType<typeof memoryPins> | undefined;

/** Registered memory: an IND2MemoryRegion, and the pinned memory. */
export class NativeRegion implements WvMemoryRegion {
  readonly address: number;
  readonly length: number;
  lkey = 0;
  rkey = 0;

  constructor(
    readonly com: OverlappedObject<'IND2MemoryRegion'>,
    private readonly pin: MemoryPin,
    readonly bytes: Uint8Array,
  ) {
    this.address = pin.address;
    this.length = bytes.length;
  }

  /** Releases the region and its memory. Nothing may be registered any more, so that the device does not write to the memory. */
  end(): void {
    this.com.release();
    pins?.unpin(this.pin);
  }
}

/**
 * Registers memory with DO_NOT_SECURE_VM. V8 cannot decommit secured pages, and may abort the process.
 *
 * @param make - creates an IND2MemoryRegion
 */
export function registerMemory(
  make: () => OverlappedObject<'IND2MemoryRegion'>,
  buffer: ArrayBufferLike | ArrayBufferView,
  flags: number,
): Overlapped<NativeRegion> {
  const bytes = registrableBytes(buffer);
  pins ??= memoryPins();
  const pin = pins.pin(bytes);
  let region: NativeRegion | undefined;
  try {
    const made = new NativeRegion(make(), pin, bytes);
    region = made;
    const registered = ((flags & PROVIDER_FLAGS) | Nd2MrFlag.DO_NOT_SECURE_VM) >>> 0;
    return made.com
      .start('Register', () => [pin.address, bytes.length, registered])
      .derive(
        () => {
          made.lkey = made.com.call('GetLocalToken');
          made.rkey = made.com.call('GetRemoteToken');
          return made;
        },
        (error) => {
          made.end();
          throw error;
        },
      );
  } catch (error) {
    if (region === undefined) pins.unpin(pin);
    else region.end();
    throw error;
  }
}

/** Deregisters memory and blocks until that completes. @throws StatusError DEVICE_BUSY and others; the memory stays registered */
export function deregisterMemory(region: NativeRegion): void {
  region.com.finish('Deregister');
  region.end();
}
