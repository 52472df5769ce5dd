/**
 * A key whose low byte changes by requests (IBA 1 §10.6.3.1), as its owner sees it. The HCA chooses the index. The new key is current
 * from the moment the request is queued. If requests fail, it is the key of the last one that succeeded.
 */
export class ChangingKey {
  /** The key of the latest request, queued or completed. */
  rkey = 0;
  private confirmed = 0;
  private readonly queued: number[] = [];

  /** The key that the HCA has chosen. */
  begin(key: number): void {
    this.rkey = this.confirmed = key;
  }

  /** The key with another low byte. */
  withByte(byte: number): number {
    return ((this.rkey & 0xffffff00) | (byte & 0xff)) >>> 0;
  }

  /** A request that makes this the key was queued. */
  changing(key: number): void {
    this.queued.push(key);
    this.rkey = key;
  }

  /** The oldest queued request has succeeded. */
  changed(): void {
    const key = this.queued.shift();
    if (key !== undefined) this.confirmed = key;
    this.settle();
  }

  /** The oldest queued request has failed. */
  failed(): void {
    this.queued.shift();
    this.settle();
  }

  private settle(): void {
    if (this.queued.length === 0) this.rkey = this.confirmed;
  }
}
