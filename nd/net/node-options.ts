/** Types of the options for `node:net`; base/option-places.ts has all names. */
/** Options of `net.connect` that are accepted but have no effect here. */
export interface NodeSocketOptions {
  /** No effect: data is never delayed to combine it. */
  readonly noDelay?: boolean | undefined;
  /** No effect: idle connections are always probed. */
  readonly keepAlive?: boolean | undefined;
  /** No effect, as `keepAlive`. */
  readonly keepAliveInitialDelay?: number | undefined;
  /** No effect: addresses of both families are tried. */
  readonly family?: number | undefined;
  /** No effect: names are resolved by the name service of the OS. */
  readonly hints?: number | undefined;
  /** No effect: names are resolved by the name service of the OS. */
  readonly lookup?: unknown;
  /** No effect: the address is chosen by the routes of the host. */
  readonly localAddress?: string | undefined;
  /** No effect: a free port is chosen. */
  readonly localPort?: number | undefined;
  /** No effect: addresses are tried one after another. */
  readonly autoSelectFamily?: boolean | undefined;
  /** No effect, as `autoSelectFamily`. */
  readonly autoSelectFamilyAttemptTimeout?: number | undefined;
}

/** Options of `net.createServer` that have no effect here. */
export type NodeServerOptions = Pick<NodeSocketOptions, 'noDelay' | 'keepAlive' | 'keepAliveInitialDelay'>;
