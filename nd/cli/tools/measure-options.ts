/** Options of tools that measure: sizes, iterations, and those of transfers. */
import type { Command } from 'commander';
import * as z from 'zod';
import { count } from '../argument-schemas.js';
import { commonOptions, ONE_ROLE, oneRole, roleOptions, upperCase, withRole } from './tool.js';

/** Maximum bytes of a message of any tool. */
export const MAX_BYTES = 4_194_304;

const sizeList = z
  .string()
  .regex(/^\d+(,\d+)*$/, 'must be sizes in bytes such as 1,64,4096')
  .transform((text) => text.split(',').map(Number))
  .refine(
    (sizes) => sizes.every((size) => size >= 1 && size <= MAX_BYTES),
    `must be sizes from 1 to ${MAX_BYTES} bytes`,
  );

/** 1, 2, 4 … 4 MiB. */
const allSizes = Array.from({ length: 23 }, (_, power) => 2 ** power);

/** Sizes to measure, and the maximum iterations of each. */
export const sweepOptions = {
  sizes: sizeList.default(allSizes),
  iterations: count(1, 1e9).optional(),
};

export function withSweep(command: Command, iterations: number): Command {
  return command
    .option('--sizes <list>', 'sizes in bytes such as 1,64,4096 (default: powers of 2 up to 4194304)')
    .option('--iterations <n>', `maximum iterations of each size (default: ${iterations})`);
}

/** The options of ping, pingpong, rping and rpingpong. */
const transferShape = {
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
    '-b (blocking) and -p (polling) are mutually exclusive',
  );
export type TransferOptions = z.output<typeof transferOptions>;

/** Adds {@link transferOptions} to a command. */
export function withTransfer(command: Command, iterations: number): Command {
  withRole(command)
    .option('-b, --blocking', 'wait for completions by notification')
    .option('-p, --polling', 'wait for completions by polling (the default)')
    .option('-n, --nSge <n>', 'scatter/gather entries of each transfer (default: 1)')
    .option('-q, --pipeline <n>', 'maximum requests in flight (default: 128)');
  return upperCase(withSweep(command, iterations), '-B', '-P', '-N <n>', '-Q <n>')
    .option('--volume <bytes>', 'maximum total bytes of each size (default: 2097152000)')
    .option(
      '--warmup <n>',
      'transfers before the measurement, followed by a pause of 1 s; 0: none (default: 1000)',
    );
}
