import type { CaseContext } from '../case-context.js';
import { type Spi, spiVersions } from '../half.js';
import type { Case } from '../runner.js';

/** Collects the cases of a group. */
export class Group {
  readonly cases: Case[] = [];

  constructor(readonly name: string) {}

  /** Adds a case: its rule, the clause of the rule, its function, and the versions that it applies to. */
  add(
    rule: string,
    clause: string,
    body: (t: CaseContext) => Promise<void>,
    spi: readonly Spi[] = spiVersions,
  ): void {
    this.cases.push({ name: `${this.name}.${rule}`, clause: `ND SPI ${clause}`, spi, body });
  }
}
