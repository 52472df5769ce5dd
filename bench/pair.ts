/** Runs a program of this folder in two Node.js processes: a server, which prints its location, and a client, which prints the sample. */
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { type Placement, Program, placed } from './processes.js';
import type { Sample } from './samples.js';

/** A port, or the path of a UNIX socket. */
const portSchema = z.strictObject({ port: z.union([z.int().min(1).max(65_535), z.string().min(1)]) });
const sampleSchema = z.strictObject({
  mean: z.number().min(0),
  median: z.number().min(0).optional(),
  link: z.enum(['shared memory', 'UDP']).optional(),
});

/** `program` is relative to this folder. `both`: the client has several processes and may also use the server's CPU. */
export async function measurePair(
  program: string,
  job: object,
  placement: Placement,
  role: 'client' | 'both' = 'client',
): Promise<Sample> {
  const server = start(program, ['server', JSON.stringify(job)], placed(placement, 'server'));
  try {
    const { port } = portSchema.parse(JSON.parse(await server.line()));
    return await measureAlone(program, job, placement, [`${port}`], role);
  } finally {
    server.end();
  }
}

/** Runs a measurement that needs no other process. */
export async function measureAlone(
  program: string,
  job: object,
  placement: Placement,
  more: readonly string[] = [],
  role: 'client' | 'both' = 'client',
): Promise<Sample> {
  const client = start(program, ['client', JSON.stringify(job), ...more], placed(placement, role));
  try {
    const { mean, median, link } = sampleSchema.parse(JSON.parse(await client.rest()));
    return { mean, ...(median === undefined ? {} : { median }), ...(link === undefined ? {} : { link }) };
  } finally {
    client.end();
  }
}

function start(program: string, args: readonly string[], place: readonly string[]): Program {
  const file = fileURLToPath(new URL(program, import.meta.url));
  // Only where needed: with this flag, Node.js cannot use its code cache and starts more slowly.
  const flags = args.some((arg) => arg.includes('"kind":"resident"')) ? ['--expose-gc'] : [];
  return new Program(process.execPath, [...flags, file, ...args], place);
}
