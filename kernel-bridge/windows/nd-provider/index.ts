/** NetworkDirect v2 providers of vendors: DLLs, COM objects, overlapped requests, and structures. */

import { MemoryPins } from '../memory-pins.js';
import type { SteadyMemory } from '../steady-memory.js';
import { nativeBytes } from '../steady-memory.js';
import { type Handle, loadNative } from '../win32.js';
import { windowsDoor } from '../windows-door.js';

export { type TokenOwner, TokenTable } from '../../door/token-table.js';
export { decodeSockaddr, encodeSockaddr } from '../../ioctl/sockaddr.js';
export type { MemoryPin } from '../memory-pins.js';
export type { Address, Handle, NativeFunction } from '../win32.js';
export { type NdProviderEntry, providersVariable, readCatalogue } from './catalogue.js';
export { ComObject, iidAddress, pointerAt } from './com-object.js';
export * from './layouts.js';
export { loadProvider } from './load-dll.js';
export { OverlappedObject } from './overlapped-requests.js';
export { routeSource } from './route-source.js';
export type { InterfaceName, OverlappedName, SlotOf } from './slots.js';
export type { SteadyMemory };

/** Allocates zeroed memory for the arguments of calls. V8 does not move it. */
export function argumentMemory(bytes: number): SteadyMemory {
  return nativeBytes().memory(bytes);
}

/**
 * Associates a file of CreateOverlappedFile with this thread's completion port, and closes it with the thread. Returns
 * whether that succeeded.
 */
export function adoptFile(file: Handle): boolean {
  loadNative().own(file);
  return windowsDoor().port.attachOverlapped(file);
}

/** Closes a file of {@link adoptFile}. */
export function closeFile(file: Handle): void {
  loadNative().close(file);
}

/** Returns an empty set of pinned memory. */
export function memoryPins(): MemoryPins {
  return new MemoryPins(nativeBytes());
}
