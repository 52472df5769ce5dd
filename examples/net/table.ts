/**
 * A table read by others: its owner changes it all the time, and readers take rows from its memory. The owner's program has no part in
 * that, and no row is seen half changed.
 *
 *     node dist/examples/net/table.js serve [port]
 *     node dist/examples/net/table.js read <host> <port> <row> [times]
 */
import { allocate, connectChannel, createChannelServer } from 'networkdirect/net';
import { listen, portOf, run } from './start.js';

const ROWS = 100;
/** Bytes of a row: version, 4 bytes unused, price and volume (8 each), version again, 4 bytes unused. */
const ROW = 32;
const [HEAD, PRICE, VOLUME, TAIL] = [0, 8, 16, 24];

/** Rows in the byte order of this processor. */
class Table {
  readonly memory = allocate(ROWS * ROW);
  readonly #versions = new Int32Array(this.memory.buffer, this.memory.byteOffset, (ROWS * ROW) / 4);
  readonly #values = new Float64Array(this.memory.buffer, this.memory.byteOffset, (ROWS * ROW) / 8);

  /**
   * Changes a row. A reader copies from low to high addresses, so it sees the head before the values, and the tail behind them. The writer
   * goes the other way: equal versions at both ends mean that no change was under way.
   */
  set(row: number, price: number, volume: number): void {
    const at = row * ROW;
    const version = (this.#versions[at / 4]! + 1) | 0;
    Atomics.store(this.#versions, (at + TAIL) / 4, version);
    this.#values[(at + PRICE) / 8] = price;
    this.#values[(at + VOLUME) / 8] = volume;
    Atomics.store(this.#versions, (at + HEAD) / 4, version);
  }
}

async function serve(port = '0'): Promise<void> {
  const table = new Table();
  const server = createChannelServer();
  listen(server, port);
  server.on('listening', async () => {
    const exposed = await server.expose(table.memory);
    server.on('channel', (channel) => channel.onRequest(() => exposed.handleFor(channel)));
  });
  // A volume is a hundred times its price: a reader can tell whether a row is whole.
  let price = 0;
  setInterval(() => {
    for (let row = 0; row < ROWS; row += 1) {
      price += 0.25;
      table.set(row, price, price * 100);
    }
  }, 1);
}

async function read(host: string, port: string, row: string, times = '1'): Promise<void> {
  await using channel = await connectChannel(portOf(port), host);
  const table = channel.open(await channel.request('the table, please'));
  let again = 0;
  for (let left = Number(times); left > 0; ) {
    // A row that does not exist is a RangeError here.
    const bytes = await table.read(Number(row) * ROW, ROW);
    const view = new DataView(bytes.buffer, bytes.byteOffset, ROW);
    if (view.getInt32(HEAD, true) !== view.getInt32(TAIL, true)) {
      again += 1;
      continue;
    }
    const [price, volume] = [view.getFloat64(PRICE, true), view.getFloat64(VOLUME, true)];
    if (volume !== price * 100) throw new Error(`Half of a row was seen: price ${price}, volume ${volume}.`);
    left -= 1;
    if (left === 0) console.log(`price ${price}, volume ${volume}; ${again} of the reads met a change`);
  }
}

await run('table.js serve [port] | read <host> <port> <row> [times]', { serve, read });
