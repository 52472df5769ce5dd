/** Names of listeners: programs of one user on one host find each other without a port. */
import { claimLocalName, type LocalNameClaim, NdError, portsOfLocalName, Status } from '../../index.js';
import { wrongValue } from '../base/checks.js';
import { NetError, netError } from '../base/errors.js';

export type { LocalNameClaim };

/** Where servers with a name listen. All links of a host are found by this address. */
export const NAMED_HOST = '127.0.0.1';

function translated<T>(what: string, body: () => T): T {
  try {
    return body();
  } catch (error) {
    if (error instanceof NdError && error.status === Status.INVALID_PARAMETER)
      throw wrongValue(error.message.replace(/^(\w+: )+/, ''));
    throw netError(error, what);
  }
}

/** @throws TypeError `ERR_INVALID_ARG_VALUE`: not a name; NetError `EADDRINUSE`, `ENOBUFS`, `ENOTSUP` */
export function claimName(name: string): LocalNameClaim {
  return translated('listen', () => claimLocalName(name));
}

/** The ports at which the owner of a name may listen. @throws as {@link claimName}; NetError `ECONNREFUSED`: there is none */
export function portsOfName(name: string): number[] {
  const ports = translated('connect', () => portsOfLocalName(name));
  if (ports.length === 0) throw noListener(name);
  return ports;
}

/** @throws NetError `ECONNREFUSED`: the owner of the name does not listen at this port any more */
export function checkStillNamed(name: string, port: number): void {
  if (!portsOfName(name).includes(port)) throw noListener(name);
}

function noListener(name: string): NetError {
  return new NetError(
    'ECONNREFUSED',
    `connect: no process of this user listens by the name '${name}' on this host; start its server first.`,
  );
}

/** @throws TypeError: a name stands beside an address */
export function checkNameAlone(
  call: string,
  { name, host, port }: { name?: unknown; host?: unknown; port?: unknown },
): void {
  if (name === undefined) return;
  const other = host !== undefined ? 'host' : port !== undefined ? 'port' : undefined;
  if (other === undefined) return;
  const sentence = `\`name\` of ${call} must be given without \`port\` and \`host\`; got \`${other}\`, too.`;
  throw wrongValue(sentence);
}
