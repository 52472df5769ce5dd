/** Text tables for a terminal. */
import Table from 'cli-table3';

const bare = {
  ...{
    top: '',
    'top-mid': '',
    'top-left': '',
    'top-right': '',
    bottom: '',
    'bottom-mid': '',
    'bottom-left': '',
  },
  ...{
    'bottom-right': '',
    left: '',
    'left-mid': '',
    mid: '',
    'mid-mid': '',
    right: '',
    'right-mid': '',
    middle: '  ',
  },
};

/** A table without lines. A heading that begins with `<` marks a text column; others contain numbers. */
export function table(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const made = new Table({
    head: heads.map((head) => head.replace(/^</, '')),
    colAligns: heads.map((head) => (head.startsWith('<') ? 'left' : 'right')),
    chars: bare,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  made.push(...rows.map((row) => row.map(String)));
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .join('\n');
}
