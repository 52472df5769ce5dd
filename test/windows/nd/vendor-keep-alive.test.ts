// `networkdirect/net` over a vendor's provider, and peers that disappear: the provider notices that only when a request fails.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connectChannel, type NetError } from '../../../nd/net/index.js';
import { probed } from '../../helpers/fast-probes.js';
import { channels, endAll, sockets } from '../../helpers/net-pair.js';
import { programFile } from '../../helpers/programs.js';
import { Nd2Standin } from './nd2-standin.js';
import { onlyProvider } from './vendor-host.js';

onlyProvider();
const standin = new Nd2Standin();
const program = programFile(new URL('../../helpers/net-program.js', import.meta.url));
let child: ChildProcess | undefined;

test.after.each(async () => {
  child?.kill('SIGKILL');
  await endAll();
});

const codeOf = (error: unknown) => (error as NetError).code;

test('idle connections stay open, and end when the network is lost', async () => {
  const [[one, other], [client, server]] = [await channels(), await sockets()];
  await probed(50);
  await one.send(Buffer.from('a message'));
  assert.is(String(await other.receive()), 'a message');
  const errors = Promise.all([client, server].map((socket) => once(socket, 'error')));
  const closed = Promise.all([one, other].map((channel) => once(channel, 'close')));
  standin.set({ unreachable: 1 });
  assert.equal(
    (await errors).map(([error]) => codeOf(error)),
    ['ECONNRESET', 'ECONNRESET'],
  );
  await closed;
  assert.equal(
    [one, other].map(({ error }) => codeOf(error)),
    ['ECONNRESET', 'ECONNRESET'],
  );
  standin.set({ default: 1 });
  assert.is(standin.violation(), '');
});

test('a blocked process that is killed where the network cannot report it ends an idle connection', async () => {
  child = fork(program, ['serve', '127.0.0.1']);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const channel = await connectChannel(port, '127.0.0.1');
  await channel.request('block');
  await probed(50);
  standin.set({ unreachable: 1 });
  child.kill('SIGKILL');
  await once(channel, 'close');
  assert.is(codeOf(channel.error), 'ECONNRESET');
  standin.set({ default: 1 });
  assert.is(standin.violation(), '');
});

test.run();
