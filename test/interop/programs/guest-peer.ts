/** A script of rig/ in the guest that executes commands: one JSON object per line in each direction, over TCP. */
import * as z from 'zod';
import { dial, Reader } from './tcp.js';

const refusal = z.object({ error: z.string() });

/** A command for the guest, with its arguments. */
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

  /** Sends a command, which the guest executes after the earlier ones. @throws Error with its library's error */
  ask<T>(wish: Wish, form: z.ZodType<T>): Promise<T> {
    const answer = this.last.then(() => this.exchange(wish));
    this.last = answer.catch(() => undefined);
    return answer.then((reported) => form.parse(reported));
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
