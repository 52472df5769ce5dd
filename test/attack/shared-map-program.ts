/**
 * A process of the attack on shared maps: `own NAME` stores, removes and evicts entries endlessly. `read NAME SEED` reads endlessly. It
 * reports its results on request, and the end of its view.
 */
import { createSharedMap, openSharedMap, type SharedMapView } from '../../nd/net/index.js';
import { seeded } from '../helpers/random.js';

/** The results of a reader. */
export interface MapReads {
  readonly gets: number;
  readonly found: number;
  readonly torn: number;
  readonly foreign: number;
  readonly expired: number;
  /** Reads that failed because the owner was changing the entry for a long time: it had no CPU or was killed. */
  readonly busy: number;
}

const KEYS = 400;
/** Fewer entries than keys, in little space, so that entries are evicted constantly. */
const ENTRIES = 200;
const BYTES = 2 ** 16;
const HEAD = 16;
const BATCH = 2000;

const [role, name, seed] = process.argv.slice(2);
/** A clock shared by all processes on the host, in ms. */
const clock = (): number => {
  const [seconds, nanoseconds] = process.hrtime();
  return 1000 * seconds + nanoseconds / 1e6;
};

/** A value with its round in each word, its key, and its expiry. */
function valueAt(turn: number, key: number, expiry: number): Buffer {
  const value = Buffer.alloc(HEAD + (turn % 61) * 8);
  value.writeInt32LE(turn, 0);
  value.writeInt32LE(key, 4);
  value.writeDoubleLE(expiry, 8);
  for (let at = HEAD; at < value.length; at += 4) value.writeInt32LE(turn, at);
  return value;
}

async function own(): Promise<void> {
  const map = await createSharedMap({ name: name!, entries: ENTRIES, bytes: BYTES });
  let turn = 0;
  const store = (): void => {
    for (let n = 0; n < 50; n += 1) {
      turn = (turn + 1) % 2 ** 30;
      const key = (turn * 7) % KEYS;
      const ttl = turn % 5 === 0 ? 1 + (turn % 9) : undefined;
      if (turn % 97 === 0) map.delete(`key ${key}`);
      else map.set(`key ${key}`, valueAt(turn, key, ttl === undefined ? 0 : clock() + ttl), { ttl });
    }
    setImmediate(store);
  };
  store();
  process.send!('stores');
}

async function read(): Promise<void> {
  const random = seeded(Number(seed));
  const seen = { gets: 0, found: 0, torn: 0, foreign: 0, expired: 0, busy: 0 };
  const begun = clock();
  const view: SharedMapView<Uint8Array | string, Buffer> = await openSharedMap({ name: name! });
  // The view's clock has an error of up to half a round trip of opening.
  const slack = clock() - begun;
  const check = (key: number, value: Buffer | undefined): void => {
    seen.gets += 1;
    if (value === undefined) return;
    seen.found += 1;
    const turn = value.length < HEAD ? -1 : value.readInt32LE(0);
    if (value.length !== HEAD + (turn % 61) * 8) seen.torn += 1;
    else if (value.readInt32LE(4) !== key) seen.foreign += 1;
    else if (!value.equals(valueAt(turn, key, value.readDoubleLE(8)))) seen.torn += 1;
    const expiry = value.length < HEAD ? 0 : value.readDoubleLE(8);
    if (expiry !== 0 && clock() > expiry + slack + (clock() - before)) seen.expired += 1;
  };
  let before = clock();
  let ended = false;
  view.once('close', () => {
    ended = true;
    process.send!('closed');
  });
  process.on('message', () => process.send!(seen));
  const look = (): void => {
    if (ended) return;
    for (let n = 0; n < BATCH; n += 1) {
      const key = Math.floor(random() * KEYS);
      before = clock();
      try {
        check(key, view.get(`key ${key}`));
      } catch (error) {
        if ((error as { code?: string }).code !== 'EBUSY') throw error;
        seen.busy += 1;
        break;
      }
    }
    setImmediate(look);
  };
  process.send!(view.direct ? 'reads' : 'not direct');
  look();
}

await (role === 'own' ? own() : read());
