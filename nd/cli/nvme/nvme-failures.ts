/** The errors of `nd nvme` as sentences with their cause and what to do. */
import { NdError, Status } from '../../index.js';
import { ConnectionEnded } from '../peer-lost.js';
import { NvmeConnectionError, NvmeError, NvmeRefusedError, NvmeStatus } from './capsules.js';

/** The target of a command, as the user has named it. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly nqn?: string;
  readonly namespace?: number;
  /** Seconds. */
  readonly reconnect?: number | undefined;
}

/** Seconds for which a lost target is looked for by default. */
export const RECONNECT_SECONDS = 60;

/** Whether a command had its controller when the error came. */
export type Phase = 'connecting' | 'connected';

/** What an error means for the user; others unchanged. A target that was lost is a {@link ConnectionEnded}. */
export function meaningOf(error: unknown, target: Target, phase: Phase): unknown {
  if (error instanceof NvmeRefusedError) {
    return new Error(`${error.message} It may serve too many hosts: try again later.`, { cause: error });
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
    return `The server at ${placeOf(target)} ended the connection before it was an NVMe controller; check that it is an NVMe target: ${message}`;
  }
  const { reconnect = RECONNECT_SECONDS } = target;
  return `The target at ${placeOf(target)} is lost, and was not found again within ${reconnect} s: check that it runs; --reconnect sets how long it is looked for.`;
}

function unreachable({ status }: NdError, target: Target): string | undefined {
  const { host, port } = target;
  if (status === Status.CONNECTION_REFUSED) {
    return `No target answers at ${placeOf(target)}. Start one there (nd nvme serve --address ${host} --port ${port} …), or give its port with --port.`;
  }
  if (status === Status.TIMEOUT || status === Status.IO_TIMEOUT) {
    return `${host} does not answer. Is it up, with the target running and UDP port 4791 open in its firewall?`;
  }
  return undefined;
}

function refusal({ code }: NvmeError, target: Target): string | undefined {
  const { host, port, nqn, namespace } = target;
  switch (NvmeStatus[code as keyof typeof NvmeStatus]) {
    case NvmeStatus.CONNECT_INVALID_PARAMETERS:
      return `The target at ${placeOf(target)} has no subsystem '${nqn}'; those that it has are listed by: nd nvme discover ${host} --port ${port}`;
    case NvmeStatus.CONNECT_INVALID_HOST:
      return `The target at ${placeOf(target)} does not admit this host; give a name that it admits with --host-name.`;
    case NvmeStatus.CONNECT_BUSY:
      return `The target at ${placeOf(target)} is busy; try again later.`;
    case NvmeStatus.INVALID_NAMESPACE:
      return `Subsystem '${nqn}' has no namespace ${namespace}; those that it has are listed by: nd nvme info ${host} --port ${port} --nqn ${nqn}`;
    case NvmeStatus.WRITE_PROTECTED:
      return `Namespace ${namespace} of '${nqn}' is write-protected: the target must allow writing.`;
    default:
      return undefined;
  }
}
