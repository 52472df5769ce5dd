/** Decodes events from the words and bytes of native code. */
import type { HcaEvent } from './hca-events.js';
import { gidBytes, madAt, type SharedWords } from './hca-words-put.js';

/** Kinds of events: `HcaEvent::Kind` of addon/hca_events.h. */
export const eventKind = {
  none: 0,
  mad: 1,
  qp: 2,
  cq: 3,
  srq: 4,
  notified: 5,
  capture: 6,
  fatal: 7,
  observed: 8,
  wireLost: 9,
} as const;

/** A 32-bit number as an integer. A double, as in the array, would take a heap object in each object that stores it. */
export function word({ words }: SharedWords, at: number): number {
  return words[at]! >>> 0;
}

/** The event of this kind, from the words; undefined: none. `mad`: the bytes of a MAD. */
export function eventOf(kind: number, from: SharedWords, mad: Uint8Array): HcaEvent | undefined {
  switch (kind) {
    case eventKind.mad:
      return {
        type: 'mad',
        source: from.bytes.slice(0, gidBytes),
        destination: from.bytes.slice(gidBytes, madAt),
        scopeId: word(from, 0),
        pkey: word(from, 1),
        sender: word(from, 2),
        stranger: word(from, 3) !== 0,
        mad,
      };
    case eventKind.qp:
      return {
        type: 'qp',
        qp: word(from, 0),
        token: word(from, 1),
        event: word(from, 2),
        reason: word(from, 3),
      };
    case eventKind.cq:
      return { type: 'cq', cq: word(from, 0), event: word(from, 1) };
    case eventKind.srq:
      return { type: 'srq', srq: word(from, 0), event: word(from, 1) };
    case eventKind.notified:
      return { type: 'notified', slot: word(from, 0), serial: word(from, 1) };
    case eventKind.capture:
      return { type: 'capture', errno: word(from, 0) };
    case eventKind.fatal:
      return { type: 'fatal', device: undefined, errno: word(from, 0) };
    case eventKind.observed:
      return { type: 'observed', number: word(from, 0) };
    case eventKind.wireLost:
      return { type: 'wireLost' };
    default:
      return undefined;
  }
}
