/** Draws latency and bandwidth by message size as an SVG chart: two panels with logarithmic axes and a line for each contestant. */
import { US } from './plan.js';
import { numberText } from './report.js';
import type { RowOutcome } from './run.js';
import { bytesText } from './samples.js';

const WIDTH = 1000;
const HEIGHT = 440;
/** Origins and lengths of the panels' axes. */
const PANEL = { width: 400, height: 300, top: 60, lefts: [70, 570] } as const;
const COLOURS = ['#0b63ce', '#c2410c', '#15803d', '#7c3aed', '#a16207', '#be185d', '#475569'];

interface Point {
  readonly size: number;
  readonly value: number;
}
interface Line {
  readonly label: string;
  readonly points: readonly Point[];
}

const panels = [
  { of: 'latency', title: 'Send/Receive, local: half round trip, µs (less is better)' },
  { of: 'bandwidth', title: 'RDMA Write, local: GB/s (more is better)' },
] as const;

/** Creates the chart of all rows that belong to it. */
export function chart(outcomes: readonly RowOutcome[]): string {
  const lines = panels.map(({ of }) => linesOf(outcomes, of));
  const labels = [...new Set(lines.flat().map(({ label }) => label))];
  const colourOf = (label: string) => COLOURS[labels.indexOf(label) % COLOURS.length]!;
  const parts = panels.map(({ title }, i) => panel(PANEL.lefts[i]!, title, lines[i]!, colourOf));
  const legend = labels.map((label, i) => {
    const x = 70 + (i % 4) * 235;
    const y = HEIGHT - 34 + Math.floor(i / 4) * 20;
    return (
      `<line x1="${x}" y1="${y}" x2="${x + 24}" y2="${y}" ${stroke(label, colourOf(label))}/>` +
      text(x + 30, y + 4, label)
    );
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" ` +
      'font-family="system-ui, sans-serif" font-size="12" fill="#1f2933">',
    '<title>Latency and bandwidth by message size</title>',
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    ...parts,
    ...legend,
    '</svg>\n',
  ].join('\n');
}

function linesOf(outcomes: readonly RowOutcome[], of: 'latency' | 'bandwidth'): Line[] {
  const points = new Map<string, Point[]>();
  for (const { row, outcomes: contestants } of outcomes) {
    if (row.chart?.of !== of) continue;
    for (const { label, figure } of contestants) {
      if (figure === undefined) continue;
      const line = points.get(label) ?? [];
      line.push({ size: row.chart.size, value: figure.value });
      points.set(label, line);
    }
  }
  // A line requires two points.
  return [...points]
    .filter(([, line]) => line.length > 1)
    .map(([label, line]) => ({ label, points: line.sort((a, b) => a.size - b.size) }));
}

function panel(
  left: number,
  title: string,
  lines: readonly Line[],
  colourOf: (label: string) => string,
): string {
  const { width, height, top } = PANEL;
  const bottom = top + height;
  const parts = [text(left, top - 22, title, 'font-weight="600" font-size="14"')];
  const points = lines.flatMap((line) => line.points);
  if (points.length === 0) return [...parts, text(left, top + 20, 'not measured')].join('\n');

  const sizes = [...new Set(points.map(({ size }) => size))].sort((a, b) => a - b);
  const [low, high] = decades(points.map(({ value }) => value));
  const x = (size: number) => left + scaled(size, sizes[0]!, sizes.at(-1)!) * width;
  const y = (value: number) => bottom - scaled(value, low, high) * height;
  for (let value = low; value <= high * 1.001; value *= 10) {
    parts.push(
      `<line x1="${left}" y1="${at(y(value))}" x2="${left + width}" y2="${at(y(value))}" stroke="#d5dbe1"/>`,
      text(
        left - 8,
        y(value) + 4,
        numberText(value)
          .replace(/(\.\d*?)0+$/, '$1')
          .replace(/\.$/, ''),
        'text-anchor="end"',
      ),
    );
  }
  for (const size of sizes) {
    parts.push(
      `<line x1="${at(x(size))}" y1="${top}" x2="${at(x(size))}" y2="${bottom}" stroke="#eef1f4"/>`,
      text(x(size), bottom + 18, bytesText(size), 'text-anchor="middle"'),
    );
  }
  for (const { label, points: line } of lines) {
    const path = line.map(({ size, value }) => `${at(x(size))},${at(y(value))}`);
    parts.push(`<polyline points="${path.join(' ')}" fill="none" ${stroke(label, colourOf(label))}/>`);
    for (const { size, value } of line) {
      parts.push(
        `<circle cx="${at(x(size))}" cy="${at(y(value))}" r="3" fill="${colourOf(label)}">` +
          `<title>${escaped(`${label}, ${bytesText(size)}: ${numberText(value)}`)}</title></circle>`,
      );
    }
  }
  return parts.join('\n');
}

/** The powers of ten that enclose all values. */
function decades(values: readonly number[]): [number, number] {
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values)));
  return [low, high > low ? high : low * 10];
}

function scaled(value: number, low: number, high: number): number {
  return low === high ? 0.5 : Math.log(value / low) / Math.log(high / low);
}

/** Lines of this library are thick, and those of its variants dashed. */
function stroke(label: string, colour: string): string {
  const ours = label.startsWith(US);
  const dashes = ours && label !== US ? ' stroke-dasharray="7 4"' : '';
  return `stroke="${colour}" stroke-width="${ours ? 3 : 1.6}"${dashes}`;
}

function text(x: number, y: number, content: string, more = ''): string {
  return `<text x="${at(x)}" y="${at(y)}" ${more}>${escaped(content)}</text>`;
}

const at = (coordinate: number): string => coordinate.toFixed(1);

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
