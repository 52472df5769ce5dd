import { IbatCode } from '../ioctl/codes.js';

/** Where a question has the ports of its addresses, bytes 2 and 3 of each: no answer is about them. */
const ports = { local: [6, 7], both: [6, 7, 34, 35] };

/** IOCTLs that ask for what hardly ever changes, and change nothing themselves; with what does not matter of their input. */
const lasting: ReadonlyMap<number, readonly number[]> = new Map([
  [IbatCode.IP_TO_PORT, ports.local],
  [IbatCode.PATH, ports.both],
]);

/** How long an answer is good at most, in ms: as long as the kernel's look at the host's interfaces. */
const keptMs = 1000;
/** A program has few addresses and asks for few peers at a time. */
const most = 16;

interface Kept {
  readonly code: number;
  readonly input: Uint8Array;
  readonly output: Uint8Array;
  readonly outputLength: number;
  readonly until: number;
}

function sameQuestion(a: Uint8Array, b: Uint8Array, but: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) {
    if (a[index] !== b[index] && !but.includes(index)) return false;
  }
  return true;
}

/**
 * Answers of IBAT, so that not each connection asks again for its device and path. The kernel takes all of them back by a
 * new era, a word in memory of both sides, when an interface has changed; and so does its end.
 */
export class KeptAnswers {
  readonly #era: Int32Array;
  readonly #now: () => number;
  #kept: Kept[] = [];
  #keptIn = 0;

  constructor(era: Int32Array, now: () => number = () => performance.now()) {
    this.#era = era;
    this.#now = now;
  }

  /** The answer as it was kept, or that of `ask`. */
  answer(code: number, input: Uint8Array | null, outputLength: number, ask: () => Uint8Array): Uint8Array {
    const but = lasting.get(code);
    if (input === null || but === undefined) return ask();
    // Before asking: what changes meanwhile makes the answer old.
    const era = Atomics.load(this.#era, 0);
    if (era !== this.#keptIn) this.#kept = [];
    this.#keptIn = era;
    const now = this.#now();
    const found = this.#kept.find(
      (kept) =>
        kept.code === code && kept.outputLength === outputLength && sameQuestion(kept.input, input, but),
    );
    if (found !== undefined && now < found.until) return found.output.slice();
    const output = ask();
    if (found !== undefined || this.#kept.length >= most) {
      const out = found ?? this.#kept[0];
      this.#kept = this.#kept.filter((kept) => kept !== out);
    }
    this.#kept.push({
      code,
      input: input.slice(),
      output: output.slice(),
      outputLength,
      until: now + keptMs,
    });
    return output;
  }
}
