/** Warns of channels that a program has lost without closing them. */
import { peerText } from '../connection/address-text.js';
import type { Link } from '../connection/link.js';

/** Channels that are not closed, and their links. */
const unclosed = new FinalizationRegistry<Link>((link) => {
  if (link.over) return;
  process.emitWarning(
    `The channel to ${peerText(link)} was collected, and its connection has ended: call close(), or use \`await using\`.`,
    'NetworkDirectWarning',
  );
  link.end(undefined);
});

/** Warns when a channel is collected before its connection has ended, and ends it. */
export function watchChannel(channel: object, link: Link): void {
  unclosed.register(channel, link, channel);
}

/** The connection has ended. */
export function unwatchChannel(channel: object): void {
  unclosed.unregister(channel);
}
