import type { Overlapped } from '../../../winverbs/index.js';
import type { Completions, Told } from './protocol.js';

/** A connection as the peer program uses it, by either interface. */
export interface Link {
  receive(count: number): void;
  send(texts: readonly string[]): void;
  poll(): Completions;
  pollOne(which: keyof Completions): Told[];
  notify(which: keyof Completions): Overlapped<void>;
  notifyDisconnect(): Overlapped<void>;
  disconnect(): Overlapped<void>;
  connect(to: string, port: number, data: string): Promise<string>;
  release(): void;
}

export interface LinkListener {
  readonly port: number;
  /** `use` gets the link before anything is waited for. */
  accept(receives: number, data: string, use: (link: Link) => void): Promise<string>;
  release(): void;
}

export interface LinkStack {
  listen(address: string, port: number, backlog: number): LinkListener;
  link(from: string): Link;
  release(): void;
}
