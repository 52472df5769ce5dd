/** What a run came to: a table for people, and JSON lines for programs. */
import Table from 'cli-table3';
import type { Unit } from './plan.js';
import type { Outcome, RowOutcome, TargetOutcome } from './run.js';
import type { Figure } from './statistics.js';

/** A number with three digits that mean something. */
export function numberText(value: number): string {
  if (value === 0) return '0';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(4, digits));
}

/** How far the rounds lie apart. */
function spreadText({ least, most }: Figure): string {
  return least === most ? '' : `${numberText(least)}–${numberText(most)}`;
}

export function targetText({ factor, against, stretch }: TargetOutcome, unit: Unit): string {
  const relation = unit.better === 'less' ? '≤' : '≥';
  const text =
    against === undefined
      ? `${relation} ${numberText(factor)} ${unit.text}`
      : `${relation} ${numberText(factor)} ×`;
  return stretch === true ? `${text} (stretch)` : text;
}

function verdict({ met, stretch }: TargetOutcome): string {
  if (met === undefined) return '?';
  if (met) return 'met';
  return stretch === true ? 'not yet' : 'MISSED';
}

/** Lines between the parts of the table would be most of it. */
const NO_LINES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' } as const;

/** The table of all rows. */
export function table(outcomes: readonly RowOutcome[]): string {
  const lines = new Table({
    head: ['', 'figure', 'of rounds', 'ours is', 'target', ''],
    colAligns: ['left', 'right', 'right', 'right', 'left', 'left'],
    style: { head: [], border: [] },
    chars: NO_LINES,
  });
  for (const { row, outcomes: who, targets } of outcomes) {
    lines.push([{ content: row.title, colSpan: 6 }]);
    for (const outcome of who) {
      const mine = targets.filter(({ against }) => (against ?? who[0]!.label) === outcome.label);
      lines.push([
        `  ${outcome.label}`,
        ...figures(outcome, row.unit),
        mine.map((target) => targetText(target, row.unit)).join('\n'),
        mine.map(verdict).join('\n'),
      ]);
    }
  }
  return lines.toString();
}

function figures({ figure, statistic, ratio, missing }: Outcome, unit: Unit): string[] {
  if (figure === undefined) return [missing === undefined ? 'failed' : 'missing', '', ''];
  // What tells no median is compared with our mean.
  const meansOnly = statistic === 'mean' && unit.text === 'µs';
  return [
    `${numberText(figure.value)} ${unit.text}${meansOnly ? ' (mean)' : ''}`,
    spreadText(figure),
    ratio === undefined ? '' : `${numberText(ratio.value)} ×`,
  ];
}

/** What could not be measured, each once. */
export function absences(outcomes: readonly RowOutcome[]): string[] {
  const told = new Set<string>();
  for (const { row, outcomes: who } of outcomes) {
    for (const { label, missing, failed } of who) {
      if (missing !== undefined) told.add(`missing: ${label}: ${missing}`);
      if (failed !== undefined) told.add(`failed: ${row.name}, ${label}: ${failed}`);
    }
  }
  return [...told];
}

/** One line for each contestant of a row. */
export function jsonLines({ row, outcomes, targets }: RowOutcome): string[] {
  return outcomes.map(({ label, samples, figure, statistic, ratio, missing, failed }) =>
    JSON.stringify({
      row: row.name,
      title: row.title,
      who: label,
      unit: row.unit.text,
      better: row.unit.better,
      statistic,
      ...figure,
      ratio: ratio?.value,
      samples,
      missing,
      failed,
      targets: targets.filter(({ against }) => (against ?? outcomes[0]!.label) === label),
    }),
  );
}
