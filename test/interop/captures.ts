/** The captures of this side's programs, decoded by tshark. No packet may be malformed. */
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Defects of tshark 4.0, and the options that avoid them. No packet is exempted. */
const DISPLAY_FAULTS: readonly { readonly fault: string; readonly options: readonly string[] }[] = [
  {
    fault: 'guesses that the payload of short and empty SENDs is RPC over RDMA, and calls it malformed',
    options: ['--disable-heuristic', 'rpcrdma_infiniband'],
  },
  {
    fault: 'guesses that a payload whose first bytes are an Ethernet type is Ethernet over InfiniBand',
    options: ['--disable-heuristic', 'eth_over_ib'],
  },
  // This defect only affects the text, which is not used.
  { fault: 'shows the sender of a CM REQ as LID 65535', options: [] },
];

/** One line per packet: number, BTH opcode, UDP destination port, and tshark's description. */
const FIELDS = ['frame.number', 'infiniband.bth.opcode', 'udp.dstport', '_ws.col.Info'];
const ROCE_PORT = '4791';
/** tshark's message for a file whose writer was killed in the middle of a block. */
const CUT_SHORT = 'cut short in the middle of a packet';
/** Maximum size of tshark's output, which may be long. */
const OUTPUT_BYTES = 1 << 30;

/** The findings in the captures of a case. */
export interface Decoded {
  readonly packets: number;
  /** One line for each packet that is malformed or not a RoCEv2 packet. */
  readonly malformed: readonly string[];
}

/** Whether tshark is installed. */
export const canDecode = (): boolean => spawnSync('tshark', ['--version']).error === undefined;

async function decodeFile(file: string): Promise<Decoded> {
  const options = DISPLAY_FAULTS.flatMap((one) => one.options);
  const fields = FIELDS.flatMap((field) => ['-e', field]);
  const args = ['-n', ...options, '-r', file, '-T', 'fields', '-E', 'occurrence=f', ...fields];
  let output: string;
  try {
    ({ stdout: output } = await run('tshark', args, { maxBuffer: OUTPUT_BYTES }));
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    if (stdout === undefined || !stderr?.includes(CUT_SHORT)) throw error;
    output = stdout;
  }
  const lines = output.split('\n').filter((line) => line !== '');
  const malformed = lines.flatMap((line) => {
    const [number, opcode, port, info = ''] = line.split('\t');
    if (opcode !== '' && port === ROCE_PORT && !info.includes('Malformed')) return [];
    return [`${basename(file)}, packet ${number}: ${info}`];
  });
  return { packets: lines.length, malformed };
}

/** Decodes all files whose names begin with `files`. */
export async function decode(files: string): Promise<Decoded> {
  const names = readdirSync(dirname(files)).filter((name) => name.startsWith(`${basename(files)}-`));
  let packets = 0;
  const malformed: string[] = [];
  for (const name of names.sort()) {
    const one = await decodeFile(join(dirname(files), name));
    packets += one.packets;
    malformed.push(...one.malformed);
  }
  return { packets, malformed };
}
