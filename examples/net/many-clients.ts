/**
 * Many clients: each message of a client is sent to all others. A client that does not read is disconnected and does not block the others.
 *
 *     node dist/examples/net/many-clients.js serve [port]
 *     node dist/examples/net/many-clients.js join <host> <port> <name>      sends the lines of its input
 */
import { createInterface } from 'node:readline';
import { type Channel, connectChannel, createChannelServer } from 'networkdirect/net';
import { listen, portOf, run } from './start.js';

/** Maximum messages queued for a client. */
const MOST_WAITING = 1000;

/** Members and the number of messages queued for each. */
const members = new Map<Channel, number>();

function tell(member: Channel, text: string | Uint8Array): void {
  const waiting = members.get(member) ?? 0;
  if (waiting >= MOST_WAITING) {
    member.destroy(new Error('The client does not read its messages.'));
    return;
  }
  members.set(member, waiting + 1);
  member.send(text).then(
    () => members.has(member) && members.set(member, members.get(member)! - 1),
    () => {}, // disconnected: 'close' follows
  );
}

async function welcome(channel: Channel): Promise<void> {
  members.set(channel, 0);
  channel.on('close', () => members.delete(channel));
  tell(channel, `you are one of ${members.size}`);
  try {
    for await (const message of channel) {
      for (const member of members.keys()) if (member !== channel) tell(member, message);
    }
  } catch {
    // A client that dies must not affect the others.
  }
}

function serve(port = '0'): void {
  listen(
    createChannelServer((channel) => void welcome(channel)),
    port,
  );
}

async function join(host: string, port: string, name: string): Promise<void> {
  await using channel = await connectChannel(portOf(port), host);
  const lines = createInterface(process.stdin);
  const listening = (async () => {
    for await (const message of channel) console.log(String(message));
  })();
  // The end of the input ends the client. The end of the server's messages also ends it, with an error.
  const speaking = (async () => {
    for await (const line of lines) await channel.send(`${name}: ${line}`);
  })();
  await Promise.race([listening, speaking]);
  lines.close();
}

await run('many-clients.js serve [port] | join <host> <port> <name>', { serve, join });
