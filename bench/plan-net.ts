/** Rows of `networkdirect/net` beside `node:net`: requests, streams, files. */
import type { NetJobInput } from './net/job.js';
import {
  type Amount,
  GIGABYTES,
  MIB,
  MICROSECONDS,
  PER_SECOND,
  type Row,
  TCP,
  type Unit,
  US,
} from './row.js';

/** A file of 1 GiB, at scale 1. */
const FILE_MIB = 1024;
const STREAM_MIB = 512;
const LEAST_MIB = 16;

/** Without and with a busy loop on each side's processor. */
export function netRows(amount: Amount): Row[] {
  return [false, true].flatMap((busy) => [
    ...[1, 1000].flatMap((inFlight) => [
      request(amount, inFlight, 'rate', busy),
      request(amount, inFlight, 'processor', busy),
    ]),
    bytes(amount, 'stream', STREAM_MIB, 'a Duplex, writes of 64 KiB', busy),
    bytes(amount, 'copy', FILE_MIB, 'a file copied into a file', busy),
  ]);
}

function request(amount: Amount, inFlight: number, figure: 'rate' | 'processor', busy: boolean): Row {
  const what = `requests of 64 bytes, ${inFlight} in flight`;
  const job = { kind: 'request', inFlight, figure, seconds: amount.seconds, busy } as const;
  return figure === 'rate'
    ? row(`net request ${inFlight}`, what, job, PER_SECOND, 2)
    : row(
        `net request ${inFlight} processor`,
        `${what}: processor time of both processes for each`,
        job,
        MICROSECONDS,
        1,
      );
}

function bytes(amount: Amount, kind: 'stream' | 'copy', mib: number, title: string, busy: boolean): Row {
  return row(`net ${kind}`, title, { kind, bytes: amount.of(mib, LEAST_MIB) * MIB, busy }, GIGABYTES, 2);
}

function row(name: string, title: string, job: Omit<NetJobInput, 'over'>, unit: Unit, factor: number): Row {
  const beside = job.busy === true;
  return {
    name: beside ? `${name} busy` : name,
    title: `networkdirect/net: ${title}${beside ? ', a busy loop on each processor' : ''}`,
    unit,
    contestants: [
      { label: US, by: 'net', job: { ...job, over: 'networkdirect/net' } },
      { label: TCP, by: 'net', job: { ...job, over: 'node:net' } },
    ],
    targets: [{ against: TCP, factor }],
  };
}
