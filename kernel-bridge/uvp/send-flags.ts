/** Requests and flags that each type of queue pair takes. */
import { QpType, WvSend } from '../ioctl/constants.js';

const KNOWN_SEND_FLAGS = WvSend.IMMEDIATE | WvSend.FENCE | WvSend.SIGNALED | WvSend.SOLICITED | WvSend.INLINE;

const NO_DATA = KNOWN_SEND_FLAGS & ~(WvSend.IMMEDIATE | WvSend.INLINE);
/** Flags that each opcode takes. */
export const SEND_FLAGS: readonly number[] = [
  /* send */ KNOWN_SEND_FLAGS,
  /* write */ KNOWN_SEND_FLAGS,
  /* read */ NO_DATA,
  /* compare-exchange */ NO_DATA,
  /* fetch-add */ NO_DATA,
  /* bind */ NO_DATA,
  /* invalidate */ NO_DATA,
  /* fast-register */ NO_DATA,
];
/** Stands for the refused flags of an opcode that the type of queue pair does not have. */
export const NO_REQUEST = -1;

/** Requests that each type of queue pair has, by opcode (IBA 1 §11.4.1.1; unreliable transports have no responses). */
const REQUESTS: Readonly<Record<number, readonly boolean[]>> = {
  /*            send, write, read, c-x, f-add, bind, invalidate; fast-register only if asked for */
  [QpType.RC]: [true, true, true, true, true, true, true],
  [QpType.UC]: [true, true, false, false, false, false, false],
  [QpType.UD]: [true, false, false, false, false, false, false],
};

/** Flags refused by opcode, or {@link NO_REQUEST}: one table for all queue pairs of a type. */
const REFUSED: Readonly<Record<number, Int32Array>> = Object.fromEntries(
  Object.entries(REQUESTS).map(([type, has]) => [
    type,
    Int32Array.from(SEND_FLAGS, (flags, opcode) => (has[opcode] === true ? ~flags : NO_REQUEST)),
  ]),
);
/** Of reliable queue pairs that take requests of fast registration. */
const MANAGED = Int32Array.from(SEND_FLAGS, (flags) => ~flags);
/** For an unknown type, which the HCA refuses. */
const ALL_REFUSED = Int32Array.from(SEND_FLAGS, () => NO_REQUEST);

/** Flags refused by opcode, or {@link NO_REQUEST}, on a queue pair of this type. `managed`: it was made for fast registration. */
export function refusedFlags(type: number, managed = false): Int32Array {
  if (managed && type === QpType.RC) return MANAGED;
  return REFUSED[type] ?? ALL_REFUSED;
}
