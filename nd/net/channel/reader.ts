import { Nd2RemoteMemory } from '../../index.js';
import { netError } from '../base/errors.js';
import type { MemoryDescription } from '../connection/frames.js';
import type { Link, Slot } from '../connection/link.js';
import { Transfer } from '../connection/operations.js';
import type { Admission, Charge } from './budget.js';

/** A large payload that was read, and its charge. */
export interface Fetched {
  /** The payload. */
  readonly bytes: Buffer;
  /** The payload's charge to the budget, released by the user of the bytes. */
  readonly charge: Charge;
}

/**
 * Reads large payloads from the peer's memory. The frame that describes a payload keeps its slot until the peer is notified that the
 * payload was read. Nothing here refers to the channel, because a list of all connections holds the waiting payloads.
 */
export class Reader {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Reads a payload when the admission permits it. Resolves with undefined if the connection ends first. */
  fetch(admission: Admission, memory: MemoryDescription, slot: Slot): Promise<Fetched | undefined> {
    return new Promise((resolve) => {
      admission.pass(memory.length, (charge) => {
        void this.#read(memory, slot).then((bytes) => {
          if (bytes === undefined) charge.release();
          resolve(bytes && { bytes, charge });
        });
      });
    });
  }

  /** Discards a payload that is no longer needed, so that the peer may reuse its memory. */
  decline({ id }: MemoryDescription, slot: Slot): void {
    if (!this.#link.over) this.#link.reportRead(id, slot);
  }

  async #read({ address, token, length, id }: MemoryDescription, slot: Slot): Promise<Buffer | undefined> {
    const link = this.#link;
    if (link.over) return undefined;
    try {
      const { context } = link;
      // Registering memory takes longer than copying from memory that is already registered.
      const bounce = await context.borrow(length);
      const { region, offset, own } = bounce;
      const remote = new Nd2RemoteMemory(address, token);
      const error = await new Promise<unknown>((done) =>
        link.operate(
          new Transfer(false, [{ memory: region, offset, length }], remote, 0, context.mostTransfer, done),
        ),
      );
      const read = Buffer.from(bounce.bytes.buffer, bounce.bytes.byteOffset + offset, length);
      const bytes = own || error !== undefined ? read : Buffer.from(read);
      if (own) region.release();
      else context.returnBounce(bounce);
      if (error !== undefined) throw error;
      if (!link.over) link.reportRead(id, slot);
      return bytes;
    } catch (error) {
      link.end(netError(error, 'receive'));
      return undefined;
    }
  }
}
