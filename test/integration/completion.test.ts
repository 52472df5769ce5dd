// nd completion as shells use it: bash, zsh (in its own terminal) and fish complete a command line with the script.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runNd } from '../helpers/nd-tool.js';
import { needing } from '../helpers/needs.js';

const folder = mkdtempSync(join(tmpdir(), 'nd-completion-'));
test.after(() => rmSync(folder, { recursive: true }));

/** Runs a shell without the user's files, in a folder that contains one file. */
function shell(program: string, parameters: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, parameters, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
    env: { PATH: process.env.PATH, HOME: folder, TERM: 'dumb', LANG: 'C.UTF-8' },
  });
  assert.equal([error, status, stderr], [undefined, 0, '']);
  return stdout;
}

async function script(name: string): Promise<string> {
  const { code, stdout, stderr } = await runNd('completion', name);
  assert.equal([code, stderr], [0, '']);
  const file = join(folder, `nd.${name}`);
  writeFileSync(file, stdout);
  return file;
}

/** Command lines, and the completions of their last word; undefined: none, because the user has to type the word. */
const lines = [
  { line: 'nd nv', completed: ['nvme'] },
  { line: 'nd nvme re', completed: ['read'] },
  { line: 'nd ping --siz', completed: ['--sizes'] },
  { line: 'networkdirect nvme read --outp', completed: ['--output'] },
  { line: 'nd nvme read --output nd.', completed: undefined },
  { line: 'nd mrlat --sizes ', completed: [] },
  { line: 'nd rp', completed: ['rping', 'rpingpong'] },
  { line: 'nd completion f', completed: ['fish'] },
] as const;

needing(test, 'bash')('bash completes commands, options and files', async () => {
  const file = await script('bash');
  const complete = (line: string): string[] =>
    shell('bash', [
      '--norc',
      '-c',
      `source "$1"; [[ $(complete -p nd) == *"-F _nd nd" && $(complete -p networkdirect) == *"-F _nd networkdirect" ]] || exit 9
       read -ra COMP_WORDS <<< "$2"; [[ $2 == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _nd
       printf '%s\\n' "\${COMPREPLY[@]}"`,
      'bash',
      file,
      line,
    ])
      .split('\n')
      .filter((word) => word !== '')
      .sort();
  for (const { line, completed } of lines) assert.equal(complete(line), completed ?? ['nd.bash'], line);
  // Every command and every option of its help, except the hidden ones.
  const { stdout } = await runNd('pingpong', '--help');
  const options = [...stdout.matchAll(/^ {2}(?:(-\w), )?(--[\w-]+)/gm)].flatMap(([, short, long]) =>
    short === undefined ? [long!] : [short, long!],
  );
  assert.ok(options.length > 20);
  assert.equal(complete('nd pingpong '), options.sort());
});

needing(test, 'fish')('fish completes commands, options and files', async () => {
  const file = await script('fish');
  await script('bash');
  for (const { line, completed } of lines) {
    const reported = shell('fish', [
      '--no-config',
      '-c',
      `source ${file}; complete -C ${JSON.stringify(line)}`,
    ]);
    const words = reported
      .split('\n')
      .map((one) => one.split('\t')[0]!)
      .filter((word) => word !== '');
    assert.equal(words.sort(), completed ?? ['nd.bash', 'nd.fish'], line);
  }
});

needing(test, 'zsh')('zsh completes commands and options at a terminal', async () => {
  const file = await script('zsh');
  // Returns the line of a zsh in a terminal after Tab. The command `typed` prints it as words.
  const driver = `
    zmodload zsh/zpty
    zpty z zsh -f -i
    zpty -w z "PS1=; autoload -Uz compinit; compinit -u -D; source ${file}; nd() { print -r -- \\"<\\$*>\\"; }; networkdirect() { nd \\$*; }; print rea''dy"
    while zpty -r z line; do [[ $line == *ready* ]] && break; done
    for typed in "$@"; do
      zpty -w -n z "$typed"$'\\t\\r'
      while zpty -r z line; do [[ $line == *'<'*'>'* ]] && break; done
      print -r -- "\${\${line#*<}%%>*}"
    done
    zpty -d z`;
  const single = lines.flatMap(({ line, completed }) =>
    completed?.length === 1 ? [{ line, completed }] : [],
  );
  const reported = shell('zsh', ['-f', '-c', driver, 'zsh', ...single.map(({ line }) => line)]);
  assert.equal(
    reported.trim().split('\n'),
    single.map(({ line, completed }) => [...line.split(' ').slice(1, -1), completed[0]].join(' ')),
  );
});

test('an unsupported shell is rejected with the list of supported ones', async () => {
  const { code, stderr } = await runNd('completion', 'tcsh');
  assert.is(code, 2);
  assert.match(stderr, /Allowed choices are bash, zsh, fish\./);
});

test.run();
