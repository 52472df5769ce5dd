/**
 * The conformance suite: the rules for a provider of ND SPI v1 or v2, as cases that run against any object that
 * implements the TypeScript SPI.
 *
 * @module conformance
 */

export { NotApplicable, Violation } from './case-context.js';
export { cases } from './cases/index.js';
export { type Half, type HalfInfo, type Party, type Spi, spiVersions } from './half.js';
export { makeToken } from './handshake.js';
export { loadSubject, makeHalf, openerNames, type Subject } from './load-provider.js';
export {
  CONTROL_PORT,
  HalfError,
  localParty,
  type RemoteOptions,
  type RemoteParty,
  remoteParty,
  type ServeOptions,
  serveHalf,
} from './party.js';
export { formatResults, type Totals, totalsOf } from './result-table.js';
export { type Case, type CaseResult, type RunOptions, runCases, selectCases } from './runner.js';
