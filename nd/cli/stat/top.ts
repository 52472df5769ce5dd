/** `nd top`: a live view of this user's processes in the terminal or as a web page. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import * as z from 'zod';
import { readProcesses } from '../../../kernel-bridge/index.js';
import { count } from '../argument-schemas.js';
import { wrongOptions } from '../command-line.js';
import { onInterrupt } from '../interrupts.js';
import { short } from './number-text.js';
import { problemText, type Rates, type Row, Sampler, type Seen } from './sample.js';
import { table } from './text-table.js';
import { serveView } from './web.js';

const seconds = z.coerce
  .number('must be a number of seconds')
  .min(0.1, 'must be 0.1 or more')
  .max(3600, 'must be 3600 or less');

/** Columns for sorting, in descending order. */
const sortKeys = ['messages', 'bytes', 'retransmits', 'connections', 'pid'] as const;
type SortKey = (typeof sortKeys)[number];

const weight: Readonly<Record<SortKey, (row: Row) => number>> = {
  messages: ({ rates }) => (rates ? rates.messagesOut + rates.messagesIn : 0),
  bytes: ({ rates }) => (rates ? rates.bytesOut + rates.bytesIn : 0),
  retransmits: ({ rates }) => (rates ? rates.retransmits + rates.naks + rates.rnr + rates.timeouts : 0),
  connections: ({ connections }) => connections,
  pid: ({ pid }) => -pid,
};

/** Sorts rows by a column; equal rows are sorted by process id. */
export function sorted<T extends Row>(rows: readonly T[], key: SortKey): T[] {
  return [...rows].sort((a, b) => weight[key](b) - weight[key](a) || a.pid - b.pid || a.slot - b.slot);
}

const options = z
  .object({
    delay: seconds.default(1),
    count: count(1, 1_000_000_000).optional(),
    sort: z.enum(sortKeys, `must be one of ${sortKeys.join(', ')}`).default('messages'),
    json: z.boolean().default(false),
    web: z.boolean().default(false),
    port: count(0, 65_535).optional(),
  })
  .refine(({ port, web }) => port === undefined || web, { path: ['port'], message: 'requires --web' })
  .refine((one) => one.count === undefined || !one.web, {
    path: ['count'],
    message: 'cannot be used with --web',
  });

type Options = z.output<typeof options>;

/** A column of the view. In a narrow terminal, columns with a smaller `keep` are omitted first. */
interface Column {
  readonly head: string;
  readonly keep: number;
  readonly cell: (row: Seen) => string;
}

const rate = (name: keyof Rates) => (row: Seen) => (row.rates ? short(row.rates[name]) : '');

/** All columns except the program, which is last and always shown. */
const columns: readonly Column[] = [
  { head: 'PID', keep: Number.POSITIVE_INFINITY, cell: ({ pid }) => String(pid) },
  { head: 'SLOT', keep: 1, cell: ({ slot }) => String(slot) },
  { head: 'QPS', keep: 5, cell: ({ queuePairs }) => String(queuePairs) },
  { head: 'CONN', keep: 10, cell: ({ connections }) => String(connections) },
  { head: '<UDP', keep: 6, cell: ({ wire }) => wire },
  { head: 'MSG/S OUT', keep: 14, cell: rate('messagesOut') },
  { head: 'MSG/S IN', keep: 13, cell: rate('messagesIn') },
  { head: 'B/S OUT', keep: 12, cell: rate('bytesOut') },
  { head: 'B/S IN', keep: 11, cell: rate('bytesIn') },
  { head: 'DIRECT/S', keep: 8, cell: rate('direct') },
  { head: 'IN FLIGHT', keep: 9, cell: ({ inFlight, window }) => `${inFlight}/${window}` },
  { head: 'RESENT/S', keep: 7, cell: rate('retransmits') },
  { head: 'NAK/S', keep: 3, cell: rate('naks') },
  { head: 'RNR/S', keep: 4, cell: rate('rnr') },
  { head: 'TIMEOUT/S', keep: 2, cell: rate('timeouts') },
];

/** Characters between columns. */
const GAP = 2;
/** Minimum width of the program column before others are omitted; longer programs are truncated. */
const PROGRAM = 20;

const widest = (texts: readonly string[]): number => Math.max(...texts.map((text) => text.length));

const shortened = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, Math.max(most - 1, 0))}…` : text;

/** The view as a table of the columns that fit into `width` characters. */
export function formatTop(
  rows: readonly Seen[],
  key: SortKey,
  width = Number.POSITIVE_INFINITY,
): { text: string; hidden: number } {
  const shown = sorted(rows, key);
  const programs = shown.map(({ program, problem }) =>
    problem ? `${program} (${problemText[problem]})` : program,
  );
  const cells = columns.map((column) => ({ ...column, texts: shown.map((row) => column.cell(row)) }));
  const widthOf = ({ head, texts }: { head: string; texts: string[] }): number =>
    widest([head, ...texts]) + GAP;
  let left = width - Math.min(widest(['PROGRAM', ...programs]), PROGRAM);
  const kept = new Set<string>();
  for (const column of [...cells].sort((a, b) => b.keep - a.keep)) {
    if (left < widthOf(column) && kept.size > 0) break;
    left -= widthOf(column);
    kept.add(column.head);
  }
  const fitting = cells.filter(({ head }) => kept.has(head));
  const rest = width - fitting.reduce((sum, column) => sum + widthOf(column), 0);
  const text = table(
    [...fitting.map(({ head }) => head), '<PROGRAM'],
    shown.map((_, n) => [...fitting.map(({ texts }) => texts[n]!), shortened(programs[n]!, rest)]),
  );
  return { text, hidden: columns.length - fitting.length };
}

/** Wraps text at words. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
/** Keys that select the sort column. */
const keys: Readonly<Record<string, SortKey>> = Object.fromEntries(sortKeys.map((key) => [key[0]!, key]));

/** Controls the terminal screen until the view ends. */
class Screen {
  #key: SortKey;
  #rows: readonly Seen[] = [];

  constructor(
    key: SortKey,
    private readonly stop: () => void,
  ) {
    this.#key = key;
    process.stdout.write(ENTER);
    process.stdout.on('resize', this.#draw);
    if (process.stdin.isTTY) process.stdin.setRawMode(true).setEncoding('utf8').on('data', this.#pressed);
  }

  show(rows: readonly Seen[]): void {
    this.#rows = rows;
    this.#draw();
  }

  close(): void {
    process.stdout.off('resize', this.#draw);
    if (process.stdin.isTTY) process.stdin.off('data', this.#pressed).setRawMode(false).pause();
    process.stdout.write(LEAVE);
  }

  readonly #pressed = (text: string | Buffer): void => {
    // Escape alone ends the view; other keys are escape sequences.
    const typed = text === '\x1b' ? ['q'] : [...String(text)];
    if (typed.some((key) => key === 'q' || key === '\x03')) this.stop();
    if (typed[0] !== '\x1b') for (const key of typed) this.#key = keys[key] ?? this.#key;
    this.#draw();
  };

  readonly #draw = (): void => {
    // A terminal of unknown size reports a size of 0.
    const width = process.stdout.columns || 80;
    const height = process.stdout.rows || 24;
    const hint = sortKeys.map((key) => (key === this.#key ? `[${key}]` : key)).join(' ');
    const { text, hidden } = formatTop(this.#rows, this.#key, width);
    const more = hidden > 0 ? `; ${hidden} more columns if the terminal is wider` : '';
    const head = `nd top: ${this.#rows.length} HCAs of this user's processes, sorted by ${hint}; first letter: sort, q: quit${more}`;
    const body =
      this.#rows.length === 0
        ? wrapped('No process of this user uses the software HCA.', width)
        : text.split('\n');
    const lines = [...wrapped(head, width), '', ...body]
      .slice(0, height - 1)
      .map((line) => line.slice(0, width));
    process.stdout.write(`\x1b[H${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
  };
}

/** A line of JSON: the rows without the lists they were computed from. */
function lineOf(rows: readonly Seen[], key: SortKey): string {
  const shown = sorted(rows, key).map(({ statistics: _, pairs: __, ...row }) => row);
  return `${JSON.stringify({ at: new Date().toISOString(), processes: shown })}\n`;
}

/** Waits. Resolves with false if the user has stopped it. */
const pause = (ms: number, signal: AbortSignal): Promise<boolean> =>
  sleep(ms, true, { signal }).catch(() => false);

async function watch(
  { delay, sort, json, count: views }: Options,
  signal: AbortSignal,
  stop: () => void,
): Promise<void> {
  const sampler = new Sampler();
  const takeSample = async (): Promise<Seen[]> => sampler.take(await readProcesses());
  const onScreen = !json && process.stdout.isTTY;
  const most = views ?? (onScreen || json ? Number.POSITIVE_INFINITY : 1);
  const screen = onScreen ? new Screen(sort, stop) : undefined;
  try {
    // The first sample has no rates, but a screen should show something immediately.
    screen?.show(await takeSample());
    if (screen === undefined) await takeSample();
    for (let shown = 0; shown < most && (await pause(delay * 1000, signal)); shown++) {
      const rows = await takeSample();
      if (signal.aborted) return;
      if (screen) screen.show(rows);
      else process.stdout.write(json ? lineOf(rows, sort) : `${formatTop(rows, sort).text}\n`);
    }
  } finally {
    screen?.close();
  }
}

async function serve({ delay, port = 0, json }: Options, signal: AbortSignal): Promise<void> {
  const sampler = new Sampler();
  const view = await serveView({
    port,
    delayMs: delay * 1000,
    sample: async () => sampler.take(await readProcesses()),
  });
  process.stdout.write(
    json
      ? `${JSON.stringify({ url: view.url })}\n`
      : `The live view is at ${view.url}\nOnly programs on this host that know this URL can read it. Press Ctrl-C to stop.\n`,
  );
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await view.close();
}

/** Runs until the user stops it. */
async function run(values: Options): Promise<void> {
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  using _ = onInterrupt(stop);
  process.stdout.once('error', stop);
  await (values.web ? serve(values, abort.signal) : watch(values, abort.signal, stop));
}

/** The command; `fail` prints an error. */
export function topCommand(fail: (error: unknown) => void): Command {
  return new Command('top')
    .description('show a live view of running processes, in the terminal or as a web page')
    .option('-d, --delay <seconds>', 'refresh interval in seconds (default: 1)')
    .option('-n, --count <n>', 'stop after this many updates')
    .option('--sort <column>', `${sortKeys.join(', ')} (default: messages)`)
    .option('--web', 'serve a page with charts on 127.0.0.1, with an unguessable URL')
    .option('--port <n>', 'port of the page (default: a free one)')
    .option('--json', 'print a line of JSON for each update')
    .allowExcessArguments(false)
    .action(async (given: Record<string, unknown>) => {
      const parsed = options.safeParse(given);
      if (!parsed.success) return wrongOptions(parsed.error, given);
      try {
        await run(parsed.data);
      } catch (error) {
        fail(error);
      }
    });
}
