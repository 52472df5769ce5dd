/** Idle open connections: no thread of either process wakes up. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runApart } from '../helpers/apart.js';
import { needing } from '../helpers/needs.js';
import { programFile } from '../helpers/programs.js';
import { long } from '../helpers/tiers.js';

const program = programFile(new URL('../helpers/rest-program.js', import.meta.url));
/** V8 itself collects garbage for some time after work; this test must not count that. */
const quietV8 = ['--v8-pool-size=0', '--no-memory-reducer', '--single-threaded-gc'];
/**
 * Length of a window: this many consecutive sleeps of this process, which take at least 3 s in total. On a busy machine it waits for a CPU
 * like the watched processes, so that one of their timers would fire within a window.
 */
const SLEEPS = 10;
const SLEEP_MS = 300;
/**
 * Work left over from connecting ends within some windows, or later on a busy machine. A permanent wake-up occurs in all of them.
 */
const WINDOWS = 20;

interface Side {
  readonly child: ChildProcess;
  line(): Promise<string>;
}

function start(...args: string[]): Side {
  const child = spawn(process.execPath, [...quietV8, program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return {
    child,
    line: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`a side ended (${child.exitCode ?? child.signalCode})`);
      return value;
    },
  };
}

/** The number of sleeps of each thread of a process. */
function sleeps({ child }: Side): Map<string, number> {
  const folder = `/proc/${child.pid}/task`;
  return new Map(
    readdirSync(folder).map((thread) => {
      const status = readFileSync(`${folder}/${thread}/status`, 'utf8');
      const name = /^Name:\s*(.*)$/m.exec(status)?.[1];
      return [`${name} ${thread}`, Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(status)?.[1])];
    }),
  );
}

/** Threads that woke up within a window, and how often. */
async function awake(sides: readonly Side[]): Promise<[string, number][]> {
  const before = sides.map(sleeps);
  for (let n = 0; n < SLEEPS; n++) await sleep(SLEEP_MS);
  return sides.flatMap((side, i) =>
    [...sleeps(side)]
      .map(([thread, count]): [string, number] => [thread, count - (before[i]!.get(thread) ?? 0)])
      .filter(([, count]) => count > 0),
  );
}

long(needing(test, 'namespaces'), 'idle connections do not wake any thread of either process', async () => {
  const server = start('listen');
  const client = start('connect', await server.line());
  try {
    assert.equal(await Promise.all([server.line(), client.line()]), ['ready', 'ready']);
    let woken: [string, number][] = [];
    for (let n = 0; n < WINDOWS; n++) {
      woken = await awake([server, client]);
      if (woken.length === 0) break;
    }
    assert.equal(woken, []);
  } finally {
    for (const { child } of [client, server]) {
      const ended = once(child, 'exit');
      if (child.kill('SIGKILL')) await ended;
    }
  }
});

// Runs in a private namespace. Elsewhere, changes of interfaces and other programs would wake this process.
runApart(import.meta.url, () => test.run());
