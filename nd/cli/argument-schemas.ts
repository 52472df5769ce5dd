/** Schemas of command-line arguments. They are separate from command-line.ts because loading zod takes longer than printing a version. */
import { isIP } from 'node:net';
import * as z from 'zod';
import { isHostName } from './command-line.js';

/** An integer within limits. */
export const count = (low: number, high: number) =>
  z.coerce
    .number('must be a number')
    .int('must be an integer')
    .min(low, `must be ${low} or more`)
    .max(high, `must be ${high} or less`);

/** An IP address. An IPv6 address may have a scope. */
export const ipAddress = z
  .string()
  .refine((text) => isIP(text.replace(/%.*$/, '')) !== 0, 'must be an IP address such as 192.0.2.1');

/** An IP address or a host name, which `addressOfHost` resolves. */
export const hostAddress = z
  .string()
  .refine(
    (text) => isIP(text.replace(/%.*$/, '')) !== 0 || isHostName(text),
    'must be an IP address such as 192.0.2.1, or a host name',
  );
