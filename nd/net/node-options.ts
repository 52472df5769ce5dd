/** Options of programs for `node:net`, as types; base/option-places.ts has all names. */
/** Options of `net.connect` that programs for it may give, and that have no effect here. */
export interface NodeSocketOptions {
  /** No effect: nothing waits for more bytes before it is sent. */
  readonly noDelay?: boolean | undefined;
  /** No effect: the adapter has its own keep-alive. */
  readonly keepAlive?: boolean | undefined;
  /** No effect, as `keepAlive`. */
  readonly keepAliveInitialDelay?: number | undefined;
  /** No effect: addresses of both families are tried. */
  readonly family?: number | undefined;
  /** No effect: the system's name service is asked. */
  readonly hints?: number | undefined;
  /** No effect: the system's name service is asked. */
  readonly lookup?: unknown;
  /** No effect: the host's routes choose the address. */
  readonly localAddress?: string | undefined;
  /** No effect: the port is a free one. */
  readonly localPort?: number | undefined;
  /** No effect: addresses are tried one after the other. */
  readonly autoSelectFamily?: boolean | undefined;
  /** No effect, as `autoSelectFamily`. */
  readonly autoSelectFamilyAttemptTimeout?: number | undefined;
}

/** Options of `net.createServer` that have no effect here. */
export type NodeServerOptions = Pick<NodeSocketOptions, 'noDelay' | 'keepAlive' | 'keepAliveInitialDelay'>;
