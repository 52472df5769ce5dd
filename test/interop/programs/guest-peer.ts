/** A script of rig/ in the guest that does what it is told: a JSON object a line each way, over TCP. */
import { z } from 'zod';
import { dial, Reader } from '../../../examples/interop/tcp.js';

const refusal = z.object({ error: z.string() });

/** What the guest is to do, and with what. */
export interface Wish {
  readonly do: string;
  readonly [field: string]: unknown;
}

export class GuestPeer {
  private last: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly reader: Reader,
    private readonly write: (line: string) => void,
  ) {}

  static async meet(guest: string, port: number): Promise<GuestPeer> {
    const socket = await dial(guest, port);
    return new GuestPeer(new Reader(socket), (line) => socket.write(line));
  }

  /** Has the guest do something, when it has done what was asked before. @throws Error with what its library says if that refuses */
  ask<T>(wish: Wish, form: z.ZodType<T>): Promise<T> {
    const answer = this.last.then(() => this.exchange(wish));
    this.last = answer.catch(() => undefined);
    return answer.then((told) => form.parse(told));
  }

  private async exchange(wish: Wish): Promise<unknown> {
    this.write(`${JSON.stringify(wish)}\n`);
    const answer: unknown = JSON.parse(await this.reader.line());
    const refused = refusal.safeParse(answer);
    if (refused.success) throw new Error(`The guest refuses: ${refused.data.error}`);
    return answer;
  }

  close(): void {
    this.reader.close();
  }
}
