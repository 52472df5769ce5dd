// A device that goes while many requests of every kind wait, in two processes at once, through the real door.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const program = fileURLToPath(new URL('../helpers/unplug-program.js', import.meta.url));

async function run(): Promise<unknown> {
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const [code] = await once(child, 'close');
  assert.is(code, 0);
  return JSON.parse(text);
}

test('every request that waits ends in DEVICE_REMOVED, nothing is left, and the device can be plugged in again', async () => {
  const removed = ['DEVICE_REMOVED'];
  const ended = Object.fromEntries(
    [
      'cqAny',
      'cqSolicited',
      'cqError',
      'getRequest',
      'connect',
      'accept',
      'disconnect',
      'lookup',
      'srqNotify',
      'deviceNotify',
      'notifyDisconnect',
      'portEvent',
      'fatalEvent',
    ].map((kind) => [kind, removed]),
  );
  const left = { pd: 0, mr: 0, mw: 0, cq: 0, srq: 0, qp: 0, removing: 0, abandoned: 0, faults: 0 };
  const lookups = ['SUCCESS', 'NOT_FOUND', 'SUCCESS'];
  for (const told of await Promise.all([run(), run()])) assert.equal(told, { ended, left, lookups });
});

test.run();
