/** An element of a {@link Fifo}. */
export interface Member<T> {
  /** The queued value. */
  readonly value: T;
  /** The previous element in the queue. */
  previous: Member<T> | undefined;
  /** The next element in the queue. */
  next: Member<T> | undefined;
  /** Whether the element is still in the queue. */
  waits: boolean;
}

/**
 * A first-in, first-out queue. Every operation takes constant time even if a peer makes the queue long, unlike `Array.shift` on a long
 * array.
 */
export class Fifo<T> {
  #first: Member<T> | undefined;
  #last: Member<T> | undefined;
  #length = 0;

  /** Number of elements. */
  get length(): number {
    return this.#length;
  }

  /** The oldest value. */
  get first(): T | undefined {
    return this.#first?.value;
  }

  /** Appends a value. */
  push(value: T): Member<T> {
    const member: Member<T> = { value, previous: this.#last, next: undefined, waits: true };
    if (this.#last === undefined) this.#first = member;
    else this.#last.next = member;
    this.#last = member;
    this.#length += 1;
    return member;
  }

  /** Removes and returns the oldest value. */
  shift(): T | undefined {
    const first = this.#first;
    if (first === undefined) return undefined;
    this.remove(first);
    return first.value;
  }

  /** Removes an element from this queue. Returns false if it has already left. */
  remove(member: Member<T>): boolean {
    if (!member.waits) return false;
    const { previous, next } = member;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    member.waits = false;
    this.#length -= 1;
    return true;
  }

  /** Removes and returns all values, oldest first. */
  drain(): T[] {
    const all: T[] = [];
    while (this.#first !== undefined) all.push(this.shift()!);
    return all;
  }
}
