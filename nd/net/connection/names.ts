/** Names of listeners, which let programs of one user on one host find each other without a port. */
import { claimLocalName, type LocalNameClaim, NdError, portsOfLocalName, Status } from '../../index.js';
import { wrongValue } from '../base/checks.js';
import { NetError, netError } from '../base/errors.js';

export type { LocalNameClaim };

/** The listening address of named servers. All links of a host are reachable at this address. */
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

/** @throws TypeError `ERR_INVALID_ARG_VALUE` (not a valid name); NetError `EADDRINUSE`, `ENOBUFS`, `ENOTSUP` */
export function claimName(name: string): LocalNameClaim {
  return translated('listen', () => claimLocalName(name));
}

/** The possible listening ports of the owner of a name. @throws as {@link claimName}, and NetError `ECONNREFUSED` (no such name) */
export function portsOfName(name: string): number[] {
  const ports = translated('connect', () => portsOfLocalName(name));
  if (ports.length === 0) throw noListener(name);
  return ports;
}

/** @throws NetError `ECONNREFUSED` (the owner of the name no longer listens on this port) */
export function checkStillNamed(name: string, port: number): void {
  if (!portsOfName(name).includes(port)) throw noListener(name);
}

function noListener(name: string): NetError {
  return new NetError(
    'ECONNREFUSED',
    `connect: no process of this user listens under the name '${name}' on this host. Start its server first.`,
  );
}

/** @throws TypeError if both a name and an address are given */
export function checkNameAlone(
  call: string,
  { name, host, port }: { name?: unknown; host?: unknown; port?: unknown },
): void {
  if (name === undefined) return;
  const other = host !== undefined ? 'host' : port !== undefined ? 'port' : undefined;
  if (other === undefined) return;
  const sentence = `\`name\` of ${call} must be given without \`port\` and \`host\`; got \`${other}\`.`;
  throw wrongValue(sentence);
}

/** @throws TypeError if neither a name nor a port is given */
export function checkPlace(call: string, { name, port }: { name?: unknown; port?: unknown }): void {
  if (name === undefined && port === undefined)
    throw wrongValue(`\`name\` or \`port\` of ${call} must be given; got neither.`);
}
