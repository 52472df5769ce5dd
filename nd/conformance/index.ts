/**
 * The conformance suite: the rules for a provider of ND SPI v1 or v2, as cases that run against any object that
 * implements the TypeScript SPI.
 *
 * @module conformance
 */
export { cases } from './cases/index.js';
export { NotApplicable, Violation } from './context.js';
export { type Half, type HalfInfo, type Party, type Spi, spiVersions } from './half.js';
export { makeToken } from './handshake.js';
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
export { loadSubject, makeHalf, openerNames, type Subject } from './provider.js';
export { formatResults, type Totals, totalsOf } from './report.js';
export { type Case, type CaseResult, type RunOptions, runCases, selectCases } from './runner.js';
