import { randomBits } from '../random.js';
import { ChangingKey } from './changing-key.js';

/**
 * A memory window's rkey as its owner sees it. The low byte changes with every bind (IBA 1 §10.6.7.2.4, type 2), so that a peer with the
 * old key cannot use the new one.
 */
export class SoftMemoryWindow extends ChangingKey {
  handle = 0;

  open(handle: number, rkey: number): void {
    this.handle = handle;
    this.begin(rkey);
  }

  /** A new key with the same index. */
  nextKey(): number {
    return this.withByte(this.rkey + 1 + (randomBits(8) % 255));
  }
}
