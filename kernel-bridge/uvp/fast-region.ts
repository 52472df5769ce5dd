import { ChangingKey } from './changing-key.js';

/** A region's key that requests of fast registration change. */
export class SoftFastRegion extends ChangingKey {
  constructor(key: number) {
    super();
    this.begin(key);
  }
}
