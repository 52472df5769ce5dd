/** The programs of examples/net, each as a user runs it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { patternOf } from '../helpers/net-pattern.js';
import { programFile } from '../helpers/programs.js';
import { long } from '../helpers/tiers.js';

const HOST = '127.0.0.1';
const children = new Set<ChildProcess>();
test.after.each(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** A running program and its lines of output. */
function start(program: string, ...args: string[]) {
  const file = programFile(new URL(`../../examples/net/${program}.js`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args]);
  children.add(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  let errors = '';
  child.stderr.on('data', (bytes) => (errors += bytes));
  return {
    child,
    line: async (): Promise<string> => String((await lines.next()).value),
    /** Its exit code and its standard error. */
    ended: async (): Promise<[number, string]> => {
      const [code] = child.exitCode === null ? await once(child, 'close') : [child.exitCode];
      return [code as number, errors];
    },
  };
}

async function serving(
  program: string,
  ...args: string[]
): Promise<{ port: string; server: ReturnType<typeof start> }> {
  const server = start(program, ...args);
  const [, port] = /^port (\d+)$/.exec(await server.line())!;
  return { port: port!, server };
}

long(test, 'rpc: results, and errors with the message of the server', async () => {
  const { port } = await serving('rpc', 'serve');
  assert.is(await start('rpc', 'call', HOST, port, 'sum', '1', '2', '3.5').line(), '6.5');
  assert.is(await start('rpc', 'call', HOST, port, 'largest', '4', '-9').line(), '4');
  const [code, errors] = await start('rpc', 'call', HOST, port, 'divide', '1', '0').ended();
  assert.is(code, 1);
  assert.match(errors, /Division by zero/);
  assert.match((await start('rpc', 'call', HOST, port, 'toString').ended())[1], /Unknown function toString/);
  assert.match((await start('rpc', 'call', HOST, port, 'sum', 'x').ended())[1], /must be numbers/);
  assert.equal((await start('rpc', 'call', HOST).ended())[0], 2);
});

long(test, 'file-copy: the complete file appears under its own name and nowhere else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'net-copy-'));
  try {
    const bytes = patternOf(3_000_001);
    const file = join(folder, 'some file');
    writeFileSync(file, bytes);
    const target = mkdtempSync(join(folder, 'to-'));
    const { port, server } = await serving('file-copy', 'receive', target);
    assert.match(await start('file-copy', 'send', HOST, port, file).line(), /^copied 30000\d\d bytes/);
    assert.is(await server.line(), 'received some file');
    assert.ok(readFileSync(join(target, 'some file')).equals(bytes));
    assert.equal(readdirSync(target), ['some file']);
    assert.is((await start('file-copy', 'send', HOST, port, join(folder, 'no file')).ended())[0], 1);
    assert.match(await server.line(), /receiving failed/);
    assert.equal(readdirSync(target), ['some file']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('many-clients: all other clients get each message, even when one of them dies', async () => {
  const { port } = await serving('many-clients', 'serve');
  const clients = [];
  for (let n = 0; n < 4; n += 1) {
    const client = start('many-clients', 'join', HOST, port, `client ${n}`);
    assert.is(await client.line(), `you are one of ${n + 1}`);
    clients.push(client);
  }
  const [first, dying, ...others] = clients;
  first!.child.stdin.write('hello\n');
  for (const client of [dying!, ...others]) assert.is(await client.line(), 'client 0: hello');
  dying!.child.kill('SIGKILL');
  await dying!.ended();
  others[0]!.child.stdin.write('still there?\n');
  for (const client of [first!, others[1]!]) assert.is(await client.line(), 'client 2: still there?');
  first!.child.stdin.end();
  assert.equal(await first!.ended(), [0, '']);
});

test.run();
