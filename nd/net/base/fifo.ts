/** A member of a {@link Fifo}. */
export interface Member<T> {
  /** What was put in. */
  readonly value: T;
  /** The member that leaves before this one. */
  previous: Member<T> | undefined;
  /** The member that leaves after this one. */
  next: Member<T> | undefined;
  /** It was neither taken nor removed. */
  waits: boolean;
}

/** First in, first out. Every operation takes constant time, whatever a peer has put in: `Array.shift` of a long array does not. */
export class Fifo<T> {
  #first: Member<T> | undefined;
  #last: Member<T> | undefined;
  #length = 0;

  /** Number of members. */
  get length(): number {
    return this.#length;
  }

  /** The oldest one. */
  get first(): T | undefined {
    return this.#first?.value;
  }

  /** Adds one at the end. */
  push(value: T): Member<T> {
    const member: Member<T> = { value, previous: this.#last, next: undefined, waits: true };
    if (this.#last === undefined) this.#first = member;
    else this.#last.next = member;
    this.#last = member;
    this.#length += 1;
    return member;
  }

  /** Takes the oldest one. */
  shift(): T | undefined {
    const first = this.#first;
    if (first === undefined) return undefined;
    this.remove(first);
    return first.value;
  }

  /** Removes a member of this queue. False: it has left before. */
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

  /** Takes all, oldest first. */
  drain(): T[] {
    const all: T[] = [];
    while (this.#first !== undefined) all.push(this.shift()!);
    return all;
  }
}
