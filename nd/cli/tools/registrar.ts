/** Memory registration for `nd mrlat` and `nd mrrate`, with both versions of the SPI. */
import {
  Nd2MrFlag,
  type NdMemoryHandle,
  ndOpenAdapter,
  ndOpenV1Adapter,
  type Overlapped,
  type SocketAddress,
} from '../../index.js';

/** A registration that can be performed. */
export interface Registration {
  register(): Overlapped<unknown>;
  /** Call after {@link register} has completed. */
  deregister(): Overlapped<unknown>;
  [Symbol.dispose](): void;
}

/** An adapter that registers memory for local requests. */
export interface Registrar {
  registration(bytes: Uint8Array<ArrayBuffer>): Registration;
  [Symbol.dispose](): void;
}

/** Opens the adapter of an address. */
export function openRegistrar(spi: 'v1' | 'v2', address: SocketAddress): Registrar {
  if (spi === 'v1') {
    const adapter = ndOpenV1Adapter(address);
    return {
      registration: (bytes) => {
        let request: Overlapped<NdMemoryHandle>;
        return {
          register: () => {
            request = adapter.registerMemory(bytes);
            return request;
          },
          deregister: () => adapter.deregisterMemory(request.getResult()),
          [Symbol.dispose]: () => {},
        };
      },
      [Symbol.dispose]: () => void adapter.release(),
    };
  }
  const adapter = ndOpenAdapter(address);
  return {
    registration: (bytes) => {
      const region = adapter.createMemoryRegion();
      return {
        register: () => region.register(bytes, Nd2MrFlag.ALLOW_LOCAL_WRITE),
        deregister: () => region.deregister(),
        [Symbol.dispose]: () => void region.release(),
      };
    },
    [Symbol.dispose]: () => void adapter.release(),
  };
}
