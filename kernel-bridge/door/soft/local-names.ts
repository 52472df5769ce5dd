import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { loadAddon } from '../../hca/index.js';
import { shown } from '../../ioctl/shown.js';
import { Status, StatusError } from '../../ioctl/status.js';

const { errno: system } = constants;

/** A name claimed by this thread; see `claimLocalName` of the package. */
export interface LocalNameClaim {
  /**
   * Publishes the RDMA port of this host where the owner of the name listens.
   *
   * @throws StatusError TOO_MANY_OPENED_FILES: no file descriptor is left
   */
  publish(port: number): void;
  /** Releases the name, as the end of the thread or process does. Never fails. */
  release(): void;
}

/** Maximum length of a name in characters. With its prefix and suffix, it must fit into a UNIX socket address. */
const MOST = 48;
const ALLOWED = /^[\w.:@-]+$/;

function check(what: string, name: unknown): asserts name is string {
  if (process.platform !== 'linux')
    throw new StatusError(
      Status.NOT_SUPPORTED,
      `${what}: names of listeners are supported on Linux only; use port numbers instead.`,
    );
  if (typeof name === 'string' && name.length <= MOST && ALLOWED.test(name)) return;
  const given = typeof name === 'string' && name.length > MOST ? ` of ${name.length} characters` : '';
  throw new StatusError(
    Status.INVALID_PARAMETER,
    `${what}: \`name\` must be 1 to ${MOST} letters, digits, or characters of "_.:@-"; got ${shown(name)}${given}.`,
  );
}

function failure(what: string, name: string, error: number): StatusError {
  switch (error) {
    case system.EADDRINUSE:
      return new StatusError(
        Status.ADDRESS_ALREADY_EXISTS,
        `${what}: another process or thread of this user owns the name '${name}'; end it, or choose another name.`,
      );
    case system.EMFILE:
    case system.ENFILE:
      return new StatusError(
        Status.TOO_MANY_OPENED_FILES,
        `${what}: no file descriptor is left for the name '${name}'; close some, or raise the limit (\`ulimit -n\`).`,
      );
    default:
      return new StatusError(
        Status.INTERNAL_ERROR,
        `${what}: the name '${name}' cannot be claimed (${getSystemErrorName(-error)}).`,
      );
  }
}

/** Claims a name; see `claimLocalName` of the package. */
export function claimLocalName(name: string): LocalNameClaim {
  const what = 'claimLocalName';
  check(what, name);
  const addon = loadAddon();
  const claim = addon.claimName(name);
  if (typeof claim === 'number') throw failure(what, name, claim);
  return {
    publish: (port) => {
      if (!Number.isInteger(port) || port < 1 || port > 65_535)
        throw new StatusError(
          Status.INVALID_PARAMETER,
          `publish: \`port\` must be an integer from 1 to 65535; got ${shown(port)}.`,
        );
      const error = addon.publishPort(claim, port);
      if (error !== 0) throw failure('publish', name, error);
    },
    release: () => addon.releaseName(claim),
  };
}

/** Looks a name up; see `portsOfLocalName` of the package. */
export function portsOfLocalName(name: string): number[] {
  const what = 'portsOfLocalName';
  check(what, name);
  const ports = loadAddon().portsOfName(name);
  if (ports === null) throw failure(what, name, system.EMFILE);
  return ports.map(Number).filter((port) => Number.isInteger(port) && port > 0 && port < 65_536);
}
