/** Disturbs the packets of this guest's link, as root, with the kernel's netem. */
import { spawnSync } from 'node:child_process';

const LINK = 'eth0';
/** The device that incoming packets pass. */
const INWARDS = 'ifb0';

/** Runs a program of the guest. Returns its output. @throws Error if it fails */
export function system(line: string): string {
  const [file = '', ...args] = line.split(' ');
  const { status, stdout, stderr, error } = spawnSync(file, args, { encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${line}: ${stderr.trim()}`);
  return stdout;
}

/** The disturbed packets: those that this guest sends, or those that it receives. */
export type Direction = 'out' | 'in';

/** Creates the link for incoming packets, once. */
export function prepareInwards(): void {
  system('modprobe -a ifb act_mirred cls_u32 sch_ingress sch_netem');
  // Loading the module would create such devices itself.
  if (spawnSync('ip', ['link', 'show', INWARDS]).status !== 0) system(`ip link add ${INWARDS} type ifb`);
  system(`ip link set ${INWARDS} up`);
}

const deviceOf = (direction: Direction): string => (direction === 'out' ? LINK : INWARDS);

export function disturb(direction: Direction, netem: string): void {
  system(`tc qdisc replace dev ${deviceOf(direction)} root netem ${netem}`);
  if (direction === 'out') return;
  system(`tc qdisc add dev ${LINK} ingress`);
  system(
    `tc filter add dev ${LINK} parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ${INWARDS}`,
  );
}

/** Counters of netem since {@link disturb}. */
export interface Disturbed {
  readonly packets: number;
  readonly dropped: number;
}

/** Ends the disturbance. */
export function calm(direction: Direction): Disturbed {
  const text = system(`tc -s qdisc show dev ${deviceOf(direction)}`);
  const [, packets = '0', dropped = '0'] = /netem[\s\S]*? (\d+) pkt \(dropped (\d+)/.exec(text) ?? [];
  if (direction === 'in') system(`tc qdisc del dev ${LINK} ingress`);
  system(`tc qdisc del dev ${deviceOf(direction)} root`);
  return { packets: Number(packets), dropped: Number(dropped) };
}
