/** The base of all WinVerbs objects: references, and requests that wait. */

/** Reference counts, as in COM. Releasing never fails and may come in any order. */
export interface WvUnknown {
  /** One more reference; answers how many there are. */
  addRef(): number;
  /** One reference less; answers how many are left. The last one ends the object. */
  release(): number;
  /** The same as {@link release}, for `using`. */
  [Symbol.dispose](): void;
}

/** An object with requests that wait. */
export interface WvOverlappedObject extends WvUnknown {
  /** Completes every request of this object that still waits with CANCELLED before it returns. */
  cancelOverlappedRequests(): void;
}
