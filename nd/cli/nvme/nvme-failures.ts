/** The errors of `nd nvme` as sentences with their cause and a cure. */
import { NdError, Status } from '../../index.js';
import { ConnectionEnded } from '../peer-lost.js';
import { NvmeConnectionError, NvmeError, NvmeRefusedError, NvmeStatus } from './capsules.js';

/** The target of a command as given by the user. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly nqn?: string;
  readonly namespace?: number;
  /** In seconds. */
  readonly reconnect?: number | undefined;
}

/** Default time to try to reconnect, in seconds. */
export const RECONNECT_SECONDS = 60;

/** Whether the command was connected to its controller when the error occurred. */
export type Phase = 'connecting' | 'connected';

/** Converts an error to one with a message for the user; others are returned unchanged. A lost target becomes a {@link ConnectionEnded}. */
export function meaningOf(error: unknown, target: Target, phase: Phase): unknown {
  if (error instanceof NvmeRefusedError) {
    return new Error(`${error.message} It may serve too many hosts. Try again later.`, { cause: error });
  }
  if (error instanceof NvmeConnectionError) return new ConnectionEnded(error, lost(error, target, phase));
  const sentence =
    error instanceof NvmeError
      ? refusal(error, target)
      : error instanceof NdError && phase === 'connecting'
        ? unreachable(error, target)
        : undefined;
  return sentence === undefined ? error : new Error(sentence, { cause: error });
}

const placeOf = ({ host, port }: Target): string => `${host}, port ${port}`;

function lost({ message }: Error, target: Target, phase: Phase): string {
  if (phase === 'connecting') {
    return `The server at ${placeOf(target)} ended the connection during the NVMe handshake. Check that it is an NVMe target: ${message}`;
  }
  const { reconnect = RECONNECT_SECONDS } = target;
  return `The target at ${placeOf(target)} was lost and could not be reconnected within ${reconnect} s. Check that it is running; --reconnect sets the time limit.`;
}

function unreachable({ status }: NdError, target: Target): string | undefined {
  const { host, port } = target;
  if (status === Status.CONNECTION_REFUSED) {
    return `No target responds at ${placeOf(target)}. Start one there (nd nvme serve --address ${host} --port ${port} …), or set its port with --port.`;
  }
  if (status === Status.TIMEOUT || status === Status.IO_TIMEOUT) {
    return `${host} does not respond. Check that it is up, that the target is running, and that its firewall permits UDP port 4791.`;
  }
  return undefined;
}

function refusal({ code }: NvmeError, target: Target): string | undefined {
  const { host, port, nqn, namespace } = target;
  switch (NvmeStatus[code as keyof typeof NvmeStatus]) {
    case NvmeStatus.CONNECT_INVALID_PARAMETERS:
      return `The target at ${placeOf(target)} does not have a subsystem '${nqn}'. To list its subsystems: nd nvme discover ${host} --port ${port}`;
    case NvmeStatus.CONNECT_INVALID_HOST:
      return `The target at ${placeOf(target)} does not admit this host. Set a permitted host name with --host-name.`;
    case NvmeStatus.CONNECT_BUSY:
      return `The target at ${placeOf(target)} is busy. Try again later.`;
    case NvmeStatus.INVALID_NAMESPACE:
      return `Subsystem '${nqn}' does not have a namespace ${namespace}. To list its namespaces: nd nvme info ${host} --port ${port} --nqn ${nqn}`;
    case NvmeStatus.WRITE_PROTECTED:
      return `Namespace ${namespace} of '${nqn}' is write-protected. The target must permit writing.`;
    default:
      return undefined;
  }
}
