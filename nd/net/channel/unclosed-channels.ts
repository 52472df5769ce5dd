/** Warns of channels that were garbage-collected without being closed. */
import { peerText } from '../connection/address-text.js';
import type { Link } from '../connection/link.js';

/** Channels that are not closed, and their links. */
const unclosed = new FinalizationRegistry<Link>((link) => {
  if (link.over) return;
  process.emitWarning(
    `The channel to ${peerText(link)} was garbage-collected and its connection ended. Call close() or use \`await using\`.`,
    'NetworkDirectWarning',
  );
  link.end(undefined);
});

/** Watches a channel. If it is collected before its connection has ended, a warning is emitted and the connection is ended. */
export function watchChannel(channel: object, link: Link): void {
  unclosed.register(channel, link, channel);
}

/** Called when the connection has ended. */
export function unwatchChannel(channel: object): void {
  unclosed.unregister(channel);
}
