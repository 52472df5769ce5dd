/** A manager's connections, indexed by all identifiers in messages. */

import type { Connection, Remote } from './connection.js';
import { gidEquals, gidKey } from './gids.js';
import type { CmState, Gid } from './service.js';

/** Maximum number of ended connections whose ids stay reserved; beyond it the oldest are released early. */
export const TIMEWAIT_LIMIT = 4096;

/** States where the peer's QP is bound to this connection only (IBA 1 §12.9.8.3). */
const holdsRemoteQp: Readonly<Record<CmState, boolean>> = {
  idle: false,
  reqSent: false,
  mraReqReceived: false,
  repReceived: true,
  reqReceived: true,
  repSent: true,
  mraRepReceived: true,
  established: true,
  dreqSent: true,
  timewait: false,
};

/**
 * CA GUIDs are derived from MAC addresses, which containers and clones on other hosts repeat, and ids are small
 * numbers. They identify a peer only together with its address, so that no host can refer to another's connection. On
 * this host the process is part of the identity too: its slot is known if it sends over the local link, and messages
 * over UDP come from none of these processes.
 */
interface Peer {
  readonly caGuid: bigint;
  readonly address: Gid;
  /** A slot of this host, or BY_WIRE. */
  readonly sender: number;
  /** By communication id, including timewait. */
  readonly byId: Map<number, Connection>;
  /** By QPN. */
  readonly byQp: Map<number, Connection>;
}

const peerKey = (caGuid: bigint, address: Gid, sender: number): string =>
  `${caGuid.toString(16)}/${gidKey(address)}/${sender}`;

/** A signed 32-bit integer, for which V8 allocates no heap number. */
const keyOf = (id: number): number => id | 0;

export class ConnectionTable {
  readonly #byLocalId = new Map<number, Connection>();
  /** Peers with connections to this manager. */
  readonly #peers = new Map<string, Peer>();
  /** Ended connections, oldest first. */
  readonly #timewait = new Set<Connection>();
  /** The most recently found peer, usually also the next one. */
  #lastPeer: Peer | undefined;

  get size(): number {
    return this.#byLocalId.size;
  }

  get inTimewait(): number {
    return this.#timewait.size;
  }

  get all(): Connection[] {
    return [...this.#byLocalId.values()];
  }

  byLocalId(id: number): Connection | undefined {
    return this.#byLocalId.get(id);
  }

  /** The connection, including timewait, whose peer has this communication id. */
  byRemoteId(caGuid: bigint, commId: number, address: Gid, sender: number): Connection | undefined {
    return this.#peer(caGuid, address, sender)?.byId.get(keyOf(commId));
  }

  /** The live connection to this QP of a peer. */
  byRemoteQp(caGuid: bigint, qpn: number, address: Gid, sender: number): Connection | undefined {
    return this.#peer(caGuid, address, sender)?.byQp.get(keyOf(qpn));
  }

  /** Updates the table after a state change. Of several ended connections of a peer the last one is kept. */
  changed(connection: Connection, before: CmState): void {
    const { state, remote } = connection;
    if (state === 'idle') {
      this.#byLocalId.delete(connection.localCommId);
      this.#timewait.delete(connection);
      if (remote) this.forgetRemoteId(connection);
    } else if (before === 'idle') {
      this.#byLocalId.set(connection.localCommId, connection);
    }
    if (remote) {
      const address = connection.path.destination;
      const holds = holdsRemoteQp[state];
      if (holds && !holdsRemoteQp[before]) {
        const peer = this.#peerOf(remote, address) ?? this.#newPeer(remote, address);
        peer.byQp.set(keyOf(remote.qpn), connection);
        peer.byId.set(keyOf(remote.commId), connection);
      } else if (!holds) {
        const peer = this.#peerOf(remote, address);
        if (peer?.byQp.get(keyOf(remote.qpn)) === connection) {
          peer.byQp.delete(keyOf(remote.qpn));
          this.#release(peer);
        }
      }
    }
    if (state === 'timewait') {
      this.#timewait.add(connection);
      if (this.#timewait.size > TIMEWAIT_LIMIT) {
        for (const oldest of this.#timewait) {
          oldest.dispatch('expired');
          break;
        }
      }
    }
  }

  /** Called when the peer reuses its id for another connection. */
  forgetRemoteId(connection: Connection): void {
    const { remote } = connection;
    if (!remote) return;
    const peer = this.#peerOf(remote, connection.path.destination);
    if (peer?.byId.get(keyOf(remote.commId)) !== connection) return;
    peer.byId.delete(keyOf(remote.commId));
    this.#release(peer);
  }

  /** Called for a connection that was never established. */
  remove(connection: Connection): void {
    this.#byLocalId.delete(connection.localCommId);
  }

  #peer(caGuid: bigint, address: Gid, sender: number): Peer | undefined {
    const last = this.#lastPeer;
    if (last?.caGuid === caGuid && last.sender === sender && gidEquals(last.address, address)) return last;
    const found = this.#peers.get(peerKey(caGuid, address, sender));
    if (found !== undefined) this.#lastPeer = found;
    return found;
  }

  #peerOf(remote: Remote, address: Gid): Peer | undefined {
    return this.#peer(remote.caGuid, address, remote.sender);
  }

  #newPeer({ caGuid, sender }: Remote, address: Gid): Peer {
    const peer = { caGuid, address: new Uint8Array(address), sender, byId: new Map(), byQp: new Map() };
    this.#peers.set(peerKey(caGuid, address, sender), peer);
    return peer;
  }

  /** Removes a peer without connections, so that peers cannot make the table grow. */
  #release(peer: Peer): void {
    if (peer.byId.size > 0 || peer.byQp.size > 0) return;
    this.#peers.delete(peerKey(peer.caGuid, peer.address, peer.sender));
    if (this.#lastPeer === peer) this.#lastPeer = undefined;
  }

  clear(): void {
    this.#byLocalId.clear();
    this.#peers.clear();
    this.#lastPeer = undefined;
    this.#timewait.clear();
  }
}
