/** `networkdirect/net` over a provider that does not probe idle connections. Its connections end if the peer disappears silently. */
import '../helpers/without-poll-hint.js';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connectChannel, type NetError } from '../../nd/net/index.js';
import { probed } from '../helpers/fast-probes.js';
import { channels, endAll, sockets } from '../helpers/net-pair.js';
import { programFile } from '../helpers/programs.js';

process.env.ND_OPTIONS = JSON.stringify({ link: 'wire', keepAliveMs: 0, rc: { ackTimeoutCode: 12 } });

const program = programFile(new URL('../helpers/net-program.js', import.meta.url));
let child: ChildProcess | undefined;

test.after.each(async () => {
  child?.kill('SIGKILL');
  await endAll();
});

test('idle connections stay open, and carry data after many probes', async () => {
  const [[one, other], [client, server]] = [await channels(), await sockets()];
  await probed(50);
  await one.send(Buffer.from('a message'));
  assert.is(String(await other.receive()), 'a message');
  server.write('a stream');
  assert.is(String((await once(client, 'data'))[0]), 'a stream');
});

test('a peer whose thread is blocked stays connected, and its end is noticed', async () => {
  child = fork(program, ['serve', '127.0.0.1']);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const channel = await connectChannel(port, '127.0.0.1');
  await channel.request('block');
  await probed(50);
  assert.is(channel.error, undefined);
  child.kill('SIGSTOP');
  await once(channel, 'close');
  assert.is((channel.error as NetError).code, 'ECONNRESET');
});

test('a frozen peer ends an idle connection', async () => {
  child = fork(program, ['serve', '127.0.0.1']);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const channel = await connectChannel(port, '127.0.0.1');
  await channel.request('something');
  await probed(50);
  child.kill('SIGSTOP');
  await once(channel, 'close');
  assert.is((channel.error as NetError).code, 'ECONNRESET');
});

test.run();
