/**
 * The conformance cases between two processes with memory from allocate(). With direct access, each side executes one-sided requests in the
 * other's memory. Without it, all requests use the link. The counters show which path was used.
 */
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import {
  cases,
  loadSubject,
  makeHalf,
  remoteParty,
  runCases,
  type Spi,
  selectCases,
} from '../../nd/conformance/index.js';
import { openNetworkDirect, openNetworkDirect2 } from '../../nd/index.js';
import { serving } from './conformance-command.js';

/** Groups with one-sided requests, windows, or the end of keys and connections. */
const GROUPS = ['memory', 'transfer', 'disconnect', 'state', 'v2', 'srq', 'scale'];

const ADDRESS = '127.0.0.1';
const STEP_TIMEOUT_MS = 10_000;

/** Runs the cases with one path for both processes. The option remains set for this thread. */
export async function passesByWay(spi: Spi, direct: boolean): Promise<void> {
  const { child, peer, token } = await serving(
    { by: [], kernel: { direct } },
    ...['--spi', spi, '--address', ADDRESS, '--port', '0', '--memory', 'allocate'],
  );
  const ended = once(child, 'close');
  try {
    const { allocated } = await loadSubject(spi);
    const provider = spi === 'v1' ? openNetworkDirect({ direct }) : openNetworkDirect2({ direct });
    const half = makeHalf(spi, provider, ADDRESS, STEP_TIMEOUT_MS, allocated!());
    const port = Number(/:(\d+)$/.exec(peer)![1]);
    await using remote = await remoteParty({
      host: ADDRESS,
      port,
      token,
      spi,
      stepTimeoutMs: STEP_TIMEOUT_MS,
    });
    const before = readCounters().hca;
    const results = await runCases(
      selectCases(cases, spi).filter(({ name }) => GROUPS.includes(name.split('.')[0]!)),
      { local: { provider, half }, far: remote.party, stepTimeoutMs: STEP_TIMEOUT_MS },
    );
    const after = readCounters().hca;
    provider.release();
    assert.ok(results.length > 100);
    assert.equal(
      results.filter(({ outcome }) => outcome !== 'passed'),
      [],
    );
    const grown = (name: string): number => after[name]! - before[name]!;
    const [writes, reads] = [grown('direct_write'), grown('direct_read')];
    if (!direct) {
      assert.equal([writes, reads], [0, 0]);
      return;
    }
    // This applies to most requests of this side. The others follow a Send, are not permitted, or are the first in their memory.
    assert.ok(writes >= 30 && reads >= 90, `${writes} Writes and ${reads} Reads were direct`);
  } finally {
    child.kill();
    await ended;
  }
}
