import { Status, StatusError } from '../ioctl/status.js';
import { abi } from '../schema/generated/ring.js';
import type { UvpSendRequest } from '../user-verbs.js';

const QPN_MASK = 0xff_ffff;

/** An address handle, named by the HCA's handle number. */
export class SoftAddressHandle {
  handle = 0;
}

/** Writes a datagram's destination into its WQE. Throws INVALID_PARAMETER. */
export function writeDestination(words: Uint32Array, wqe: number, request: UvpSendRequest): void {
  const { av, remoteQpn, remoteQkey } = request;
  if (!(av instanceof SoftAddressHandle)) {
    throw new StatusError(Status.INVALID_PARAMETER, 'A datagram needs an address handle of its device.');
  }
  if (!(remoteQpn >= 0 && (remoteQpn & QPN_MASK) === remoteQpn)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `The destination QPN is ${remoteQpn}; QPNs are whole numbers of 24 bits.`,
    );
  }
  if (remoteQkey >>> 0 !== remoteQkey) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `The destination Q_Key is ${remoteQkey}; Q_Keys are whole numbers of 32 bits.`,
    );
  }
  words[wqe + abi.swAh] = av.handle;
  words[wqe + abi.swRemoteQpn] = remoteQpn;
  words[wqe + abi.swRemoteQkey] = remoteQkey;
}
