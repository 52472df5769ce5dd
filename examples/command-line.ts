/** Common parts of the command lines of all programs here. */
import { isIP, isIPv6, SocketAddress } from 'node:net';
import type { Command } from 'commander';
import { z } from 'zod';

/** A whole number within limits. */
export const count = (low: number, high: number) =>
  z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(low, `must be ${low} or more`)
    .max(high, `must be ${high} or less`);

/** An IP address; an IPv6 one may have a scope. */
export const ipAddress = z
  .string()
  .refine((text) => isIP(text.replace(/%.*$/, '')) !== 0, 'must be an IP address, as in 192.0.2.1');

/** An IP address in the system's form, without its scope. */
const canonical = (address: string): string =>
  new SocketAddress({ address, family: isIPv6(address) ? 'ipv6' : 'ipv4' }).address;

/** Whether an IP address is the wildcard. */
export const isWildcard = (address: string): boolean =>
  ['0.0.0.0', '::', '::ffff:0.0.0.0'].includes(canonical(address));

/** Whether an IP address reaches this host only. */
export const isLoopback = (address: string): boolean =>
  canonical(address).startsWith('127.') || canonical(address) === '::1';

/** Errors of the parser exit with code 2, like later errors in arguments; help exits with 0. */
export function endsInTwo(command: Command): Command {
  return command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
}
