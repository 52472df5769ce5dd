/** RoCEv2 packets of one kind, as tc's u32 filter. */

/** BTH opcodes of RC and UC (IBA 1 §9.2.1). */
export const Opcode = {
  RC_READ_RESPONSE_MIDDLE: 0x0e,
  RC_READ_RESPONSE_LAST: 0x0f,
  RC_ACKNOWLEDGE: 0x11,
  UC_SEND_MIDDLE: 0x21,
  UC_WRITE_FIRST: 0x26,
  UC_WRITE_MIDDLE: 0x27,
} as const;

const PORT = 4791;
/** Size in bytes of the headers before the BTH: an IP header without options, and UDP's. */
const BTH_AT = { 4: 28, 6: 48 } as const;
/** Distance from UDP's destination port to the BTH. */
const PORT_BACK = 6;

/** A filter for packets with this opcode. */
export function withOpcode(family: 4 | 6, opcode: keyof typeof Opcode): string {
  const at = BTH_AT[family];
  const protocol = family === 4 ? 'ip' : 'ipv6';
  return `protocol ${protocol} u32 match u8 ${Opcode[opcode]} 0xff at ${at} match u16 ${PORT} 0xffff at ${at - PORT_BACK}`;
}
