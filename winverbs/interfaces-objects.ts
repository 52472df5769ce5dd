/** The base of all WinVerbs objects: references, and overlapped requests. */

/** Reference counts, as in COM. Releasing never fails and may come in any order. */
export interface WvUnknown {
  /** Adds a reference; returns their number. */
  addRef(): number;
  /** Releases a reference; returns the number left. The last one ends the object. */
  release(): number;
  /** The same as {@link release}, for `using`. */
  [Symbol.dispose](): void;
}

/** An object with overlapped requests. */
export interface WvOverlappedObject extends WvUnknown {
  /** Completes every waiting request of this object with CANCELLED before it returns. */
  cancelOverlappedRequests(): void;
}
