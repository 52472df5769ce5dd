/** Parameters of the HCA's commands, built from those of the schema. */
import type { QpAttributeValues } from '../schema/generated/attributes.js';
import { PeerExtensions } from '../schema/generated/numbers.js';

/** All {@link PeerExtensions} supported by this version. */
export const ALL_PEER_EXTENSIONS = Object.values(PeerExtensions).reduce((all, one) => all | one, 0);

/** The attributes of a connected queue pair. */
export type ConnectAttributes = Omit<QpAttributeValues, 'state' | 'currentState' | 'type' | 'qpn' | 'qkey'>;

/** QpMask bits of each step of connecting; the state itself may be omitted. */
export interface ConnectSteps {
  readonly init: number;
  readonly rtr: number;
  readonly rts: number;
}
