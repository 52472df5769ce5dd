/** The results of a run as a text table and as JSON lines. */
import type { Row, Unit } from './plan.js';
import type { Outcome, RowOutcome, TargetOutcome } from './run.js';
import type { Figure } from './samples.js';

/** A number with three significant digits. */
export function numberText(value: number): string {
  if (value === 0) return '0';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(4, digits));
}

/** Minimum and maximum of the rounds. */
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

const HEAD = ['', 'figure', 'of rounds', 'ours is', 'target', ''];
/** Columns of numbers are aligned to the right. */
const RIGHT = [false, true, true, true, false, false];

/** A table of all rows, with a line for the title of each and one per contestant. */
export function table(outcomes: readonly RowOutcome[]): string {
  const parts = outcomes.map(({ row, outcomes: contestants, targets }) => ({
    title: row.title,
    lines: contestants.flatMap((outcome) => {
      const mine = targets.filter((target) => lineOf(target, contestants) === outcome.label);
      const first = [
        `  ${nameOf(outcome, row)}`,
        ...figures(outcome, row.unit),
        ...targetCells(mine[0], row.unit),
      ];
      return [first, ...mine.slice(1).map((target) => ['', '', '', '', ...targetCells(target, row.unit)])];
    }),
  }));
  const all = [HEAD, ...parts.flatMap(({ lines }) => lines)];
  const widths = HEAD.map((_, column) => Math.max(...all.map((cells) => cells[column]!.length)));
  const text = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (RIGHT[i]! ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd();
  return [text(HEAD), ...parts.flatMap(({ title, lines }) => [title, ...lines.map(text)])].join('\n');
}

/** The same in Markdown: one table, with titles in bold. */
export function markdown(outcomes: readonly RowOutcome[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(['what', ...HEAD.slice(1)]),
    line(RIGHT.map((right) => (right ? '---:' : '---'))),
    ...outcomes.flatMap(({ row, outcomes: contestants, targets }) => [
      line([`**${row.title}**`, '', '', '', '', '']),
      ...contestants.map((outcome) => {
        const mine = targets.filter((target) => lineOf(target, contestants) === outcome.label);
        const cells = [
          mine.map((target) => targetText(target, row.unit)).join(', '),
          mine.map(verdict).join(', '),
        ];
        return line([nameOf(outcome, row), ...figures(outcome, row.unit), ...cells]);
      }),
    ]),
  ].join('\n');
}

/** The label of the contestant whose line shows the target. */
function lineOf({ against, of }: TargetOutcome, contestants: readonly Outcome[]): string {
  return against ?? of ?? contestants[0]!.label;
}

function targetCells(target: TargetOutcome | undefined, unit: Unit): [string, string] {
  return target === undefined ? ['', ''] : [targetText(target, unit), verdict(target)];
}

/** The contestant's name, with a note if the library could not use shared memory between the two processes. */
function nameOf({ label, samples }: Outcome, { name }: Row): string {
  const byUdp = !name.includes(' wire ') && samples.some(({ link }) => link === 'UDP');
  return byUdp ? `${label} (over UDP)` : label;
}

function figures({ figure, statistic, ratio, missing }: Outcome, unit: Unit): string[] {
  if (figure === undefined) return [missing === undefined ? 'failed' : 'missing', '', ''];
  // A contestant without a median is compared with our mean.
  const meansOnly = statistic === 'mean' && unit.text === 'µs';
  return [
    `${numberText(figure.value)} ${unit.text}${meansOnly ? ' (mean)' : ''}`,
    spreadText(figure),
    ratio === undefined ? '' : `${numberText(ratio.value)} ×`,
  ];
}

/** Why contestants could not be measured, each reason once. */
export function absences(outcomes: readonly RowOutcome[]): string[] {
  const reasons = new Set<string>();
  for (const { row, outcomes: contestants } of outcomes) {
    for (const { label, missing, failed } of contestants) {
      if (missing !== undefined) reasons.add(`missing: ${label}: ${missing}`);
      if (failed !== undefined) reasons.add(`failed: ${row.name}, ${label}: ${failed}`);
    }
  }
  return [...reasons];
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
      targets: targets.filter((target) => lineOf(target, outcomes) === label),
    }),
  );
}
