/** Options of the tools that measure: sizes and iterations, and those of transfers. */
import type { Command } from 'commander';
import * as z from 'zod';
import { count } from '../argument-schemas.js';
import { commonOptions, ONE_ROLE, oneRole, roleOptions, upperCase, withRole } from './tool.js';

/** The longest message of all tools. */
export const MAX_BYTES = 4_194_304;

const sizeList = z
  .string()
  .regex(/^\d+(,\d+)*$/, 'must be sizes in bytes, as in 1,64,4096')
  .transform((text) => text.split(',').map(Number))
  .refine(
    (sizes) => sizes.every((size) => size >= 1 && size <= MAX_BYTES),
    `must be sizes from 1 to ${MAX_BYTES}`,
  );

/** 1, 2, 4 … 4 MiB. */
const allSizes = Array.from({ length: 23 }, (_, power) => 2 ** power);

/** The sizes, and the maximum number of iterations. */
export const sweepOptions = {
  sizes: sizeList.default(allSizes),
  iterations: count(1, 1e9).optional(),
};

export function withSweep(command: Command, iterations: number): Command {
  return command
    .option('--sizes <list>', 'sizes in bytes, as in 1,64,4096 (default: powers of 2 up to 4194304)')
    .option('--iterations <n>', `of a size, at most (default: ${iterations})`);
}

/** The command line of ping, pingpong, rping and rpingpong. */
export const transferShape = {
  ...commonOptions,
  ...roleOptions,
  ...sweepOptions,
  blocking: z.boolean().default(false),
  polling: z.boolean().default(false),
  nSge: count(1, 256).default(1),
  pipeline: count(1, 4096).default(128),
  volume: count(1, Number.MAX_SAFE_INTEGER).default(2_097_152_000),
  warmup: count(0, 1e9).default(1000),
};
export const transferOptions = z
  .object(transferShape)
  .refine(oneRole, ONE_ROLE)
  .refine(
    ({ blocking, polling }) => !(blocking && polling),
    '-b (blocking) and -p (polling) exclude each other',
  );
export type TransferOptions = z.output<typeof transferOptions>;

/** Adds them to a command. */
export function withTransfer(command: Command, iterations: number): Command {
  withRole(command)
    .option('-b, --blocking', 'wait for completions by notification')
    .option('-p, --polling', 'wait for completions by polling (the default)')
    .option('-n, --nSge <n>', 'scatter/gather entries of a transfer (default: 1)')
    .option('-q, --pipeline <n>', 'requests in flight (default: 128)');
  return upperCase(withSweep(command, iterations), '-B', '-P', '-N <n>', '-Q <n>')
    .option('--volume <bytes>', 'bytes of all transfers of a size, at most (default: 2097152000)')
    .option('--warmup <n>', 'transfers before the table; a rest of 1 s follows; 0: neither (default: 1000)');
}
