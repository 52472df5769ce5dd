import { randomBits } from '../random.js';

/**
 * A memory window's rkey as its owner sees it. The HCA chooses the index. The low byte changes with every bind (IBA 1 §10.6.7.2.4,
 * type 2), so that a peer with the old key cannot use the new one. The new key is current from the moment the bind is queued. If
 * binds fail, the window has the key of the last bind that succeeded.
 */
export class SoftMemoryWindow {
  handle = 0;
  /** The key of the latest bind, queued or completed. */
  rkey = 0;
  private confirmed = 0;
  private readonly queued: number[] = [];

  open(handle: number, rkey: number): void {
    this.handle = handle;
    this.rkey = this.confirmed = rkey;
  }

  /** A new key with the same index. */
  nextKey(): number {
    const step = 1 + (randomBits(8) % 255);
    return ((this.rkey & 0xffffff00) | ((this.rkey + step) & 0xff)) >>> 0;
  }

  binding(key: number): void {
    this.queued.push(key);
    this.rkey = key;
  }

  /** The oldest queued bind has succeeded. */
  bound(): void {
    const key = this.queued.shift();
    if (key !== undefined) this.confirmed = key;
    this.settle();
  }

  /** The oldest queued bind has failed. */
  failed(): void {
    this.queued.shift();
    this.settle();
  }

  private settle(): void {
    if (this.queued.length === 0) this.rkey = this.confirmed;
  }
}
