import { argumentMemory, type OverlappedObject } from '../../kernel-bridge/windows/nd-provider/index.js';
import type { Nd2Affinity } from '../spi/v2.js';

/** Calls GetNotifyAffinity, which returns a USHORT and a KAFFINITY. @throws StatusError */
export function notifyAffinity(
  com: OverlappedObject<'IND2CompletionQueue'> | OverlappedObject<'IND2SharedReceiveQueue'>,
): Nd2Affinity {
  const memory = argumentMemory(16);
  com.run('GetNotifyAffinity', memory.address, memory.address + 8);
  const view = new DataView(memory.bytes.buffer);
  return { group: view.getUint16(0, true), mask: view.getBigUint64(8, true) };
}
