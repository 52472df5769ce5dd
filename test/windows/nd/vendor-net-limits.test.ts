// `networkdirect/net` over a vendor's provider with small limits.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate } from '../../../nd/index.js';
import { channels, endAll } from '../../helpers/net-pair.js';
import { Nd2Standin } from './nd2-standin.js';
import { onlyProvider } from './vendor-host.js';

onlyProvider();
const standin = new Nd2Standin();

test.after.each(endAll);

/** Maximum bytes of a request, and the length of longer payloads. */
const MOST = 2 ** 20;
const LONG = 3 * MOST + 7;

test('payloads, reads and writes that exceed the maximum length of a request', async () => {
  standin.set({ transfer: MOST });
  const [one, other] = await channels();
  const bytes = Buffer.alloc(LONG);
  for (let at = 0; at < LONG; at += 4093) bytes[at] = 1 + (at % 255);
  await one.send(bytes);
  assert.ok((await other.receive())!.equals(bytes));
  const memory = allocate(LONG + 10);
  const { handle } = await other.expose(memory, { writable: true });
  const remote = one.open(handle);
  await remote.write(5, bytes);
  assert.ok(Buffer.from(memory.buffer, memory.byteOffset + 5, LONG).equals(bytes));
  assert.ok((await remote.read(5, LONG)).equals(bytes));
  assert.is(standin.violation(), '');
});

test.run();
