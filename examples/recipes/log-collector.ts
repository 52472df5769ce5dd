// A log collector: processes send their lines to it, and it appends them to a file. A slow disk slows the senders down: `send` does not
// resolve while the collector receives no lines, so no queue grows without bound and no line is lost.
//
//   node dist/examples/recipes/log-collector.js
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { type Channel, connectChannel, createChannelServer } from 'networkdirect/net';

const LINES = 5000;
const PROCESSES = 3;

async function collect(file: string): Promise<void> {
  const log = createWriteStream(file);
  const append = async (channel: Channel): Promise<void> => {
    try {
      // The next message is received only when the previous one is written or fits the file's buffer.
      for await (const line of channel) if (!log.write(line)) await once(log, 'drain');
    } catch (error) {
      log.write(`a process was lost: ${String(error)}\n`);
    }
  };
  const name = `log-${process.pid}`;
  const ends: Promise<void>[] = [];
  const server = createChannelServer((channel) => void ends.push(append(channel)));
  server.listen({ name });
  await once(server, 'listening');

  const children = Array.from({ length: PROCESSES }, (_, number) =>
    fork(new URL(import.meta.url), [name, String(number)]),
  );
  await Promise.all(children.map((child) => once(child, 'exit')));
  await server.close();
  await Promise.all(ends);
  log.end();
  await finished(log);
}

async function produce(name: string, number: string): Promise<void> {
  const log = await connectChannel({ name });
  for (let line = 1; line <= LINES; line += 1) await log.send(`process ${number}, line ${line}\n`);
  // Waits until the collector has received everything.
  await log.close();
}

const [name, number] = process.argv.slice(2);
if (name !== undefined) await produce(name, number!);
else {
  const folder = mkdtempSync(join(tmpdir(), 'log-'));
  await collect(join(folder, 'all.log'));
  const lines = readFileSync(join(folder, 'all.log'), 'utf8').trimEnd().split('\n');
  const last = lines.filter((line) => line.endsWith(`, line ${LINES}`)).length;
  console.log(`${lines.length} lines of ${last} processes`);
  rmSync(folder, { recursive: true });
}
