/**
 * Receives that are posted late, over connections with default retry counts: `late ROLE OWN-ADDRESS
 * GUEST-ADDRESS`, with rig/late.py in the guest. As a client this side sends, as a server it receives.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { readCounters } from '../../../kernel-bridge/index.js';
import { WvAccess } from '../../../winverbs/index.js';
import { step } from './cm-guest.js';
import { GuestPeer } from './guest-peer.js';
import { connect, initialise, Listener, SIGNALED, Side, socketAddress, wcName } from './interop-side.js';

const PEER_PORT = 18_521;
const PORT = 7504;
const BYTES = 64;
const LATE_MS = [5, 100, 900] as const;

const nothing = z.object({});
const completion = z.object({ status: z.number(), text: z.string() });

const [role = '', own = '', guest = ''] = process.argv.slice(2);
const count = (name: string): number => readCounters().hca[name] ?? 0;

const peer = await GuestPeer.meet(guest, PEER_PORT);
const side = Side.open(own);
const queue = side.queue(16);
const memory = side.memory(BYTES, WvAccess.LOCAL_WRITE);
const bytes = Buffer.from(memory.bytes.buffer);
const { cq } = queue;
const sizes = { sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
const qp = side.pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
initialise(qp);

/** Linux sends RNR NAKs for our message until its program posts a receive. */
async function sends(): Promise<void> {
  await peer.ask({ do: 'listen', addr: guest, port: PORT }, nothing);
  const accepted = peer.ask({ do: 'accept' }, nothing);
  const endpoint = await connect(side, qp, own, socketAddress(guest, PORT), {});
  await accepted;
  for (const late of LATE_MS) {
    await step(`our Send, received ${late} ms late`, async () => {
      const text = `${late} ms`;
      bytes.write(text);
      const before = count('rcvd_rnr_err');
      qp.send('send', memory.sge(0, text.length), SIGNALED);
      await sleep(late);
      await peer.ask({ do: 'receive' }, nothing);
      const reported = await peer.ask({ do: 'received' }, completion);
      assert.deepEqual(reported, { status: 0, text });
      assert.equal(wcName((await queue.any()).status), 'SUCCESS');
      console.log(`refused ${count('rcvd_rnr_err') - before} times`);
    });
  }
  await step('our Send without a receive', async () => {
    const start = performance.now();
    qp.send('send', memory.sge(0, 1), SIGNALED);
    assert.equal(wcName((await queue.any()).status), 'RNR_RETRY_ERROR');
    console.log(`ended after ${((performance.now() - start) / 1000).toFixed(1)} s`);
  });
  endpoint.release();
}

/** Linux has six retries, but retransmits as soon as we announce a receive. */
async function receives(): Promise<void> {
  using listener = new Listener(side.provider, socketAddress(own, PORT));
  const connected = peer.ask({ do: 'connect', own: guest, addr: own, port: PORT }, nothing);
  const endpoint = await listener.next();
  await endpoint.accept(qp, {});
  await connected;
  for (const late of LATE_MS) {
    await step(`the guest's Send, received ${late} ms late`, async () => {
      const text = `${late} ms`;
      const before = count('send_rnr_err');
      await peer.ask({ do: 'send', text }, nothing);
      await sleep(late);
      const start = performance.now();
      qp.postReceive('receive', memory.sge(0, BYTES));
      const { status, length } = await queue.any();
      const took = performance.now() - start;
      assert.equal(wcName(status), 'SUCCESS');
      assert.equal(bytes.toString('latin1', 0, length), text);
      assert.deepEqual(await peer.ask({ do: 'sent' }, completion), { status: 0, text: '' });
      const refused = count('send_rnr_err') - before;
      assert.ok(refused <= 5, `refused ${refused} times`);
      console.log(`refused ${refused} times, delivered ${took.toFixed(1)} ms after the receive was posted`);
    });
  }
  await step("the guest's Send without a receive", async () => {
    await peer.ask({ do: 'send', text: 'x' }, nothing);
    const { status } = await peer.ask({ do: 'sent' }, completion);
    assert.equal(status, 13, 'IBV_WC_RNR_RETRY_EXC_ERR');
  });
  endpoint.release();
}

try {
  await (role === 'client' ? sends() : receives());
} catch (error) {
  console.log(JSON.stringify(readCounters().hca));
  console.log(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
peer.close();
qp.release();
side[Symbol.dispose]();
