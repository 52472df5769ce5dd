/** Warnings of the soft kernel, in programs that end before the event loop's next turn, too. */
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const winverbs = new URL('../../winverbs/index.js', import.meta.url).href;

/** What a program that opens a provider with a capture file that cannot be written says on stderr. */
function run(then: string, ...flags: string[]): string {
  const program = `
    import { openProvider } from ${JSON.stringify(winverbs)};
    process.on('warning', ({ name }) => process._rawDebug('heard', name));
    const provider = openProvider({ capture: '/no/such/folder/capture.pcapng' });
    openProvider();
    ${then}`;
  const { status, stderr } = spawnSync(
    process.execPath,
    [...flags, '--input-type=module', '--eval', program],
    { encoding: 'utf8' },
  );
  assert.is(status, 0, stderr);
  return stderr;
}

for (const then of ['process.exit(0);', '', 'await new Promise(setImmediate);']) {
  test(`a capture that cannot be written is told once: ${then || 'the program ends'}`, () => {
    const told = run(then);
    assert.is(told.match(/'\/no\/such\/folder\/capture\.pcapng' cannot be written/g)?.length, 1, told);
    assert.is(told.match(/heard NetworkDirectWarning/g)?.length, 1, told);
  });
}

test('--no-warnings holds for it', () => {
  assert.not.match(run('process.exit(0);', '--no-warnings'), 'cannot be written');
});

test.run();
