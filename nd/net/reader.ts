import { Nd2RemoteMemory } from '../index.js';
import { netError } from './errors.js';
import { Gate } from './gate.js';
import type { Link, Slot } from './link.js';
import type { MemoryDescription } from './wire.js';

/** Reads large payloads from the peer's memory. */
export class Reader {
  /** Of large requests and answers that are being read. They wait for no program. */
  readonly #gate = new Gate();

  constructor(private readonly link: () => Link) {}

  /** Reads a payload that the program waits for, in its turn; undefined if the connection ends meanwhile. */
  fetch(memory: MemoryDescription, slot: Slot): Promise<Buffer | undefined> {
    return new Promise((resolve) =>
      this.#gate.pass(memory.length, () => {
        this.link().release(slot);
        void this.read(memory).then((bytes) => {
          this.#gate.left(memory.length);
          resolve(bytes);
        });
      }),
    );
  }

  /** A payload that nobody wants: the peer may use its memory again. */
  decline({ id }: MemoryDescription, slot: Slot): void {
    const link = this.link();
    link.release(slot);
    if (!link.over) link.reportRead(id);
  }

  /** Reads a payload now; undefined if the connection ends meanwhile. */
  async read({ address, token, length, id }: MemoryDescription): Promise<Buffer | undefined> {
    const link = this.link();
    if (link.over) return undefined;
    try {
      const { region, bytes } = await link.place.blank(length);
      const remote = new Nd2RemoteMemory(address, token);
      const error = await new Promise<unknown>((done) =>
        link.operate({ write: false, sgl: [{ memory: region, offset: 0, length }], remote, offset: 0, done }),
      );
      region.release();
      if (error !== undefined) throw error;
      if (!link.over) link.reportRead(id);
      return Buffer.from(bytes.buffer, bytes.byteOffset, length);
    } catch (error) {
      link.abort(netError(error, 'receive'));
      return undefined;
    }
  }
}
