// A multicast group over the network: group-program.js ROLE ADDRESS GROUP. `members` prints LISTENING, owns UDP port 4791, and starts a
// process without the port that joins the group. `sender` runs on another host, and that process receives its datagrams. The port's owner
// joins the group for the other process when it has received its request. No event reports that, so the sender repeats its datagrams
// until the test kills it.
import { type ChildProcess, fork } from 'node:child_process';
import { on } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readCounters } from '../../kernel-bridge/index.js';
import { openProvider } from '../../winverbs/index.js';
import { openDatagramSide, socketAddressOf } from '../helpers/datagram-side.js';
import { HANG_MS } from '../helpers/within.js';

const options = { kernel: 'soft', startTimeoutMs: 60_000 } as const;
const TEXTS = ['one', 'two', 'three'];

interface MemberEvent {
  readonly ready?: number;
  readonly text?: string;
  readonly counters?: ReturnType<typeof readCounters>;
}

const [role, address, group] = process.argv.slice(2) as [string, string, string];

/** Yields the member's messages in order. */
async function* eventsOf(child: ChildProcess): AsyncGenerator<MemberEvent> {
  for await (const [event] of on(child, 'message', { signal: AbortSignal.timeout(HANG_MS) })) {
    yield event as MemberEvent;
  }
}

async function members(): Promise<string> {
  const program = fileURLToPath(new URL('../helpers/datagram-program.js', import.meta.url));
  const child = fork(program, ['join', address, group], {
    env: { ...process.env, ND_OPTIONS: JSON.stringify(options) },
  });
  try {
    // Number of datagrams of a round that were received in order. Any datagram may be lost.
    let received = 0;
    for await (const { ready, text, counters } of eventsOf(child)) {
      if (ready !== undefined) console.log('LISTENING');
      if (text !== undefined && received < TEXTS.length) {
        if (text !== TEXTS[received]) received = 0;
        if (text === TEXTS[received]) received += 1;
        if (received === TEXTS.length) child.send('counters');
      }
      if (counters === undefined) continue;
      const { slot_rx_forwarded: forwarded } = counters.hca as Record<string, number>;
      if (forwarded === 0) throw new Error('the owner of the port did not forward a datagram');
      return `${forwarded} datagrams were forwarded by the port's owner`;
    }
    throw new Error('the member has ended');
  } finally {
    child.kill('SIGKILL');
  }
}

const provider = openProvider(options);
const side = openDatagramSide(provider, address);
if (role === 'members') {
  console.log(`PASSED: ${await members()}`);
  side.release();
  provider.release();
  process.exit(0);
}
const { addressVector, qpn, qkey } = await side.endpoint.joinMulticast(socketAddressOf(group));
const send = (): void => {
  for (const text of TEXTS) side.send(addressVector!, qpn, qkey, text);
};
send();
const { wire_tx_packets: sent } = readCounters({ kernel: 'soft' }).hca as Record<string, number>;
if (sent! < TEXTS.length) throw new Error(`${sent} packets were sent over the network`);
console.log(`PASSED: ${sent} packets sent`);
setInterval(send, 100);
