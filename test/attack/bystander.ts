/**
 * A connection that is not attacked: its two sides exchange data and check every byte. `serve` and `ask` are its sides,
 * in separate processes.
 */
import {
  type IWVProvider,
  RemoteMemory,
  Status,
  StatusError,
  WcStatus,
  type WvCompletion,
  WvSend,
} from '../../winverbs/index.js';
import { ADDRESS, openListener, openSide, type Side, take } from '../helpers/loopback.js';

const AREA = 4096;
const SIZES = [8, 64, 100, 600, 3000] as const;
const SEND_AT = 2 * AREA;
const WRITTEN_AT = 3 * AREA;
const LABEL_BYTES = 12;
const REASON_MS = 2000;

/** The state of one side. */
export interface BystanderHealth {
  readonly qpn: number;
  rounds: number;
  /** The first error. */
  failure: string | undefined;
}

function fill(area: Uint8Array, round: number): void {
  for (let n = 0; n < area.length; n++) area[n] = (round * 31 + n * 7) & 0xff;
}

function holds(area: Uint8Array, round: number): boolean {
  for (let n = 0; n < area.length; n++) if (area[n] !== ((round * 31 + n * 7) & 0xff)) return false;
  return true;
}

const sizeOf = (round: number): number => SIZES[round % SIZES.length]!;

class End {
  readonly side: Side;
  readonly health: BystanderHealth;

  constructor(provider: IWVProvider, address: string) {
    this.side = openSide(provider, {}, 4 * AREA, address);
    this.health = { qpn: this.side.qp.query().qpn, rounds: 0, failure: undefined };
    for (const slot of [0, 1]) this.receive(slot);
  }

  get label(): Buffer {
    const label = Buffer.alloc(LABEL_BYTES);
    label.writeBigUInt64LE(BigInt(this.side.region.address));
    label.writeUInt32LE(this.side.region.rkey, 8);
    return label;
  }

  receive(slot: number): void {
    this.side.qp.postReceive(slot, [{ region: this.side.region, offset: slot * AREA, length: AREA }]);
  }

  area(at: number, round: number): Buffer {
    return this.side.memory.subarray(at, at + sizeOf(round));
  }

  /** Waits for the next completions, which must all succeed. */
  async good(count: number): Promise<WvCompletion[]> {
    const completions = await take(this.side.cq, count);
    for (const { status } of completions) {
      if (status !== WcStatus.SUCCESS) throw new Error(`a request ended in status ${status}`);
    }
    return completions;
  }

  sgl(round: number) {
    return [{ region: this.side.region, offset: SEND_AT, length: sizeOf(round) }];
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function watched(health: BystanderHealth, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    health.failure ??= error instanceof Error ? error.message : String(error);
  }
}

/** The listening side. Returns its port. */
export function serve(provider: IWVProvider, address = ADDRESS): { port: number; health: BystanderHealth } {
  const { listener, peer } = openListener(provider, address);
  const end = new End(provider, address);
  const { side, health } = end;
  let disconnected: () => void = () => {};
  const ended = new Promise<boolean>((resolve) => {
    disconnected = () => resolve(true);
  });
  const run = async (): Promise<void> => {
    await listener.getRequest(side.ep);
    listener.release();
    await side.ep.accept(side.qp, { privateData: end.label });
    side.ep.notifyDisconnect().then(undefined, (error: unknown) => {
      if (error instanceof StatusError && error.status === Status.CONNECTION_DISCONNECTED) disconnected();
      side.cq.cancelOverlappedRequests();
    });
    try {
      for (let round = 0; ; round++) {
        let arrived = false;
        for (let left = round === 0 ? 1 : 2; left > 0; left--) {
          const context = (await end.good(1))[0]?.context;
          if (typeof context !== 'number') continue;
          arrived = true;
          for (const at of [context * AREA, WRITTEN_AT]) {
            if (!holds(end.area(at, round), round)) throw new Error(`round ${round}: other data at ${at}`);
          }
          end.receive(context);
        }
        if (!arrived) throw new Error(`round ${round}: no message has arrived`);
        fill(end.area(SEND_AT, round), round);
        side.qp.send('echo', end.sgl(round), WvSend.SIGNALED);
        health.rounds++;
      }
    } catch (error) {
      // Flushed requests may complete before the disconnect is reported.
      if (!(await Promise.race([ended, sleep(REASON_MS)]))) throw error;
    }
  };
  void watched(health, run);
  return { port: peer.port, health };
}

/** The connecting side. `stop` disconnects after the current round. */
export function ask(
  provider: IWVProvider,
  port: number,
  from = ADDRESS,
  to = ADDRESS,
): { health: BystanderHealth; stop: () => Promise<void> } {
  const end = new End(provider, from);
  const { side, health } = end;
  let stopped = false;
  const run = async (): Promise<void> => {
    const peer = { family: 4, address: to, port } as const;
    side.ep.bindAddress({ family: 4, address: from, port: 0 });
    side.ep.resolveRoute(peer);
    await side.ep.connect(side.qp, peer, {});
    const label = Buffer.from(side.ep.query().privateData);
    await side.ep.accept(null, {});
    const remote = new RemoteMemory({ address: label.readBigUInt64LE(), rkey: label.readUInt32LE(8) });
    for (let round = 0; !stopped; round++) {
      fill(end.area(SEND_AT, round), round);
      side.qp.write('write', end.sgl(round), WvSend.SIGNALED, remote, WRITTEN_AT);
      side.qp.send('send', end.sgl(round), WvSend.SIGNALED);
      for (const { context } of await end.good(3)) {
        if (typeof context !== 'number') continue;
        if (!holds(end.area(context * AREA, round), round)) throw new Error(`round ${round}: another echo`);
        end.receive(context);
      }
      health.rounds++;
      await sleep(round % 4);
    }
    await side.ep.disconnect();
  };
  const running = watched(health, run);
  return {
    health,
    stop: () => {
      stopped = true;
      return running;
    },
  };
}
