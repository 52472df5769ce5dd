// A multicast group over the wire: group-program.js ROLE ADDRESS GROUP. ROLE: `members`, which prints LISTENING, has UDP port 4791 and
// starts a process without it that joins the group; or `sender` on another host, whose datagrams that process receives. The owner of the
// port joins the group for the other process once it has heard from it. No event reports that, so the sender repeats its datagrams until
// the test kills it.
import { type ChildProcess, fork } from 'node:child_process';
import { on } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readCounters } from '../../kernel-bridge/index.js';
import { openProvider } from '../../winverbs/index.js';
import { openDatagramSide, socketAddressOf } from '../helpers/datagram-side.js';
import { HANG_MS } from '../helpers/within.js';

const options = { kernel: 'soft', startTimeoutMs: 60_000 } as const;
const TEXTS = ['one', 'two', 'three'];

interface Told {
  readonly ready?: number;
  readonly text?: string;
  readonly counters?: ReturnType<typeof readCounters>;
}

const [role, address, group] = process.argv.slice(2) as [string, string, string];

/** The member's news, in order. */
async function* newsOf(child: ChildProcess): AsyncGenerator<Told> {
  for await (const [news] of on(child, 'message', { signal: AbortSignal.timeout(HANG_MS) })) {
    yield news as Told;
  }
}

async function members(): Promise<string> {
  const program = fileURLToPath(new URL('../helpers/datagram-program.js', import.meta.url));
  const child = fork(program, ['join', address, group], {
    env: { ...process.env, ND_OPTIONS: JSON.stringify(options) },
  });
  try {
    // Datagrams of a round received in order. Any datagram may be lost.
    let heard = 0;
    for await (const { ready, text, counters } of newsOf(child)) {
      if (ready !== undefined) console.log('LISTENING');
      if (text !== undefined && heard < TEXTS.length) {
        if (text !== TEXTS[heard]) heard = 0;
        if (text === TEXTS[heard]) heard += 1;
        if (heard === TEXTS.length) child.send('counters');
      }
      if (counters === undefined) continue;
      const { slot_rx_forwarded: forwarded } = counters.hca as Record<string, number>;
      if (forwarded === 0) throw new Error('the owner of the port passed on no datagram');
      return `${forwarded} datagrams came from the process that has the port`;
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
if (sent! < TEXTS.length) throw new Error(`${sent} packets went by the wire`);
console.log(`PASSED: ${sent} packets sent`);
setInterval(send, 100);
