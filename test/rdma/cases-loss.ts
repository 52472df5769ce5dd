/** Every operation of the device over lossy links, against the software HCA of this host. */
import { fileURLToPath } from 'node:url';
import { HOST, OURS, onDevice, type RdmaCase, rxe } from './case.js';

/** Number of cases in programs/loss.ts. */
const CASES = 24;
const program = fileURLToPath(new URL('./programs/loss.js', import.meta.url));
/** Time limit of all of them together, in seconds. */
const LIMIT = 400;

interface Line {
  readonly operation: string;
  readonly link: string;
  readonly direction: string;
  readonly dropped: number;
  readonly seconds: number;
  readonly problem?: string;
}

/** ACK timers of 0.27 s, so that a lost last packet does not cost seconds. */
const quickTimers = { rc: { ackTimeoutCode: 16 } } as const;

export const lossCases: readonly RdmaCase[] = [
  {
    name: `${rxe.name}: ${CASES} cases of lost and duplicated packets, against the software HCA`,
    run: async (rig) => {
      const server = rig.nodeWith(quickTimers, program, 'server', rxe.at(HOST));
      await server.line(/^listening/);
      const options = { ...onDevice, ...quickTimers };
      const client = rig.nodeInGuestFor(
        OURS,
        LIMIT,
        options,
        'test/rdma/programs/loss.js',
        'client',
        rxe.at(HOST),
        rxe.at(OURS),
      );
      await client.ok(LIMIT + 30);
      server.stop();
      const lines = client.lines
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Line);
      for (const { operation, link, direction, dropped, seconds } of lines)
        rig.note(`${operation}, ${link} ${direction}: ${dropped} lost, ${seconds} s`);
      const failed = lines.filter(({ problem }) => problem !== undefined);
      const reported = failed.map((one) => `${one.operation}, ${one.link} ${one.direction}: ${one.problem}`);
      if (lines.length !== CASES) reported.push(`${lines.length} of ${CASES} cases were run`);
      if (reported.length > 0) throw new Error(reported.join('\n'));
    },
  },
];
