/** Schemas of what command lines contain. They are apart from command-line.ts, because loading zod takes longer than printing a version. */
import { isIP } from 'node:net';
import * as z from 'zod';
import { isHostName } from './command-line.js';

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

/** An IP address or the name of a host; `addressOfHost` finds the address. */
export const hostAddress = z
  .string()
  .refine(
    (text) => isIP(text.replace(/%.*$/, '')) !== 0 || isHostName(text),
    'must be an IP address, as in 192.0.2.1, or the name of a host',
  );
