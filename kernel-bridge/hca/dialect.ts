/**
 * The version of all that two instances of this package say to each other beyond the standards: `kDialect` of engine/base/dialect.h, which
 * says what it covers. CONTRIBUTING.md says when it changes.
 */
export const DIALECT = 6;
