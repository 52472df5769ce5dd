/** Options of later opens: the kernel of a thread keeps those of the first. */
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { kernelOptionsSchema } from '../../kernel-bridge/index.js';
import { ndCleanup, ndStartup, openNetworkDirect, openNetworkDirect2 } from '../../nd/index.js';
import { openProvider } from '../../winverbs/index.js';

type Options = NonNullable<Parameters<typeof openProvider>[0]>;

const first: Options = { window: 64, cm: { maxRetries: 3 } };
const used = kernelOptionsSchema.parse(first);
/** For each option another value than that of the first open. */
const others = {
  cm: { maxRetries: 4 },
  rc: { ackTimeoutCode: 18 },
  keepAliveMs: 5,
  rnrTimeoutMs: 5,
  ecn: true,
  window: 65,
  longWindowBytes: 0,
  link: 'wire',
  icrc: 'exact',
  direct: false,
  capture: 'x.pcapng',
  statistics: false,
  receiveBufferBytes: 65_536,
  faults: { dropMads: { 16: 1 } },
  pkeys: [0x8001],
  hca: 'soft',
} as const satisfies Options;

const provider = openProvider(first);
test.after(() => void provider.release());

/** The text of the error of a later open. */
function refusalOf(open: () => { release(): void }): string {
  try {
    open().release();
  } catch (error) {
    const { code, message } = error as Error & { code: string };
    return `${code} ${message}`;
  }
  return '';
}

test('a later open with another value is refused by every door, with the value in use and the cure', () => {
  const text =
    "`window` must be 64, because this thread's kernel has started with it; got 65. " +
    'Omit it, or pass it to the first open or in ND_OPTIONS.';
  for (const [open, prefix] of [
    [openProvider, ''],
    [openNetworkDirect, 'Startup: '],
    [openNetworkDirect2, 'Startup: '],
  ] as const)
    assert.is(
      refusalOf(() => open({ window: 65 })),
      `INVALID_PARAMETER ${prefix}\\\\.\\WinVerbs: ${text}`,
    );
  ndStartup();
  assert.throws(
    () => ndStartup({ window: 65 }),
    (error: Error) => error.message.endsWith(text),
  );
  ndStartup({ window: 64 });
  ndCleanup();
  ndCleanup();
});

test('every option is refused with another value, and accepted with the same or none', () => {
  const names = Object.keys(used).filter((name) => name !== 'kernel' && name !== 'startTimeoutMs');
  assert.equal(Object.keys(others), names, 'the table has every option');
  for (const [name, value] of Object.entries(others)) {
    const refused = refusalOf(() => openProvider({ [name]: value } as Options));
    assert.match(refused, new RegExp(`^INVALID_PARAMETER [^ ]* \`${name}[\`.]`), name);
    const same = used[name as keyof typeof used];
    assert.is(
      refusalOf(() => openProvider({ [name]: same } as Options)),
      '',
      name,
    );
    assert.is(
      refusalOf(() => openProvider({ [name]: undefined } as Options)),
      '',
      name,
    );
  }
  for (const options of [undefined, {}, first, { cm: {} }, { cm: { timewaitMs: 500 } }])
    assert.is(
      refusalOf(() => openProvider(options)),
      '',
    );
});

test('options of each open may differ, and the values of ND_OPTIONS do not matter', () => {
  assert.is(
    refusalOf(() => openProvider({ kernel: 'soft', startTimeoutMs: 60_000 })),
    '',
  );
  process.env.ND_OPTIONS = '{"window":65}';
  try {
    assert.is(
      refusalOf(() => openProvider()),
      '',
    );
  } finally {
    delete process.env.ND_OPTIONS;
  }
});

test('another thread has a kernel of its own, with its own options', async () => {
  const source = `
    import { parentPort } from 'node:worker_threads';
    import { openProvider } from ${JSON.stringify(new URL('../../winverbs/index.js', import.meta.url).href)};
    openProvider({ window: 65 }).release();
    parentPort.postMessage('opened');`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  const outcome = await new Promise((resolve) => {
    worker.once('message', resolve);
    worker.once('error', resolve);
  });
  assert.is(outcome, 'opened');
  await worker.terminate();
});

test.run();
