/** The two sides of rping: the port, the exit codes of its programs, and a server here that must serve every ping. */
import { GUEST } from './case.js';
import { type Program, TIMEOUT_SECONDS } from './process.js';
import type { Rig } from './rig.js';

export const RPING_PORT = 7174;
/** rping's server reports a client's disconnect as an error of its last wait. */
export const RPING_SERVER_ENDS = [0, 255];

/**
 * Checks that a client in the guest has ended like one whose pings all got replies. The end of rping is a race: its first thread closes the
 * event channel on which the second one waits or is about to wait. The second one then ends the program (255), after the disconnect, when
 * all data has been compared.
 */
export async function clientEnded(client: Program, seconds = TIMEOUT_SECONDS): Promise<void> {
  const code = await client.end(seconds);
  const said = (what: string): boolean => client.lines.some((line) => line.includes(what));
  const raced =
    code === 255 && said('client DISCONNECT EVENT') && said('rdma_get_cm_event: Bad file descriptor');
  if (said('data mismatch') || (code !== 0 && !raced)) throw client.failure(`ended with exit code ${code}`);
}

/**
 * Runs a server here with `-v`, and a client in the guest that pings it the given number of times. @throws Error if one of them fails or
 * the server has not read every ping
 */
export async function serveRping(rig: Rig, server: Program, client: string, pings: number): Promise<void> {
  await server.line(/^listening/);
  const there = rig.guest(GUEST, client);
  const outcomes = await Promise.allSettled([server.ok(), clientEnded(there)]);
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.message)] : []));
  const read = server.lines.filter((line) => line.startsWith('server ping data: rdma-ping-')).length;
  if (read !== pings) failures.unshift(`The server has read ${read} of ${pings} pings.`);
  if (failures.length > 0) throw new Error(failures.join('\n'));
}
