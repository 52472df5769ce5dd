/** A manager's connections, by everything a message can name them with. */
import { gidEquals, gidKey } from './address.js';
import type { Connection } from './connection.js';
import type { CmState, Gid } from './service.js';

/** Ended connections whose ids are still kept out of use; beyond, the oldest are let go early. */
export const TIMEWAIT_LIMIT = 4096;

/** In these the peer's QP is bound to this connection, and to no other (IBA 1 §12.9.8.3). */
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

export class Registry {
  readonly #byLocalId = new Map<number, Connection>();
  readonly #byRemoteId = new Map<string, Connection>();
  readonly #byRemoteQp = new Map<string, Connection>();
  /** Oldest first. */
  readonly #timewait = new Set<Connection>();
  /** The device that was named last, and how its keys begin: mostly it is named again. */
  #lastPeer: { caGuid: bigint; address: Gid; key: string } = {
    caGuid: 0n,
    address: new Uint8Array(0),
    key: '',
  };

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

  /** The connection, timewait included, whose peer has this communication id. */
  byRemoteId(caGuid: bigint, commId: number, address: Gid): Connection | undefined {
    return this.#byRemoteId.get(this.#peerKey(caGuid, commId, address));
  }

  /** The live connection whose peer is this QP. */
  byRemoteQp(caGuid: bigint, qpn: number, address: Gid): Connection | undefined {
    return this.#byRemoteQp.get(this.#peerKey(caGuid, qpn, address));
  }

  /** Follows a state change; the connection ended last is the one that stays. */
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
        this.#byRemoteQp.set(this.#peerKey(remote.caGuid, remote.qpn, address), connection);
        this.#byRemoteId.set(this.#peerKey(remote.caGuid, remote.commId, address), connection);
      } else if (!holds) {
        const qpKey = this.#peerKey(remote.caGuid, remote.qpn, address);
        if (this.#byRemoteQp.get(qpKey) === connection) this.#byRemoteQp.delete(qpKey);
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

  /** The peer uses its id for something new. */
  forgetRemoteId(connection: Connection): void {
    const { remote } = connection;
    if (!remote) return;
    const key = this.#peerKey(remote.caGuid, remote.commId, connection.path.destination);
    if (this.#byRemoteId.get(key) === connection) this.#byRemoteId.delete(key);
  }

  /** It never came to be. */
  remove(connection: Connection): void {
    this.#byLocalId.delete(connection.localCommId);
  }

  /**
   * CA GUIDs are made from MAC addresses, which containers and clones on other hosts repeat, and ids from small
   * numbers: only together with the address do they name one peer, and no host can speak of another's connection.
   */
  #peerKey(caGuid: bigint, number: number, address: Gid): string {
    const last = this.#lastPeer;
    if (last.caGuid !== caGuid || !gidEquals(last.address, address)) {
      const key = `${caGuid.toString(16)}/${gidKey(address)}/`;
      this.#lastPeer = { caGuid, address: new Uint8Array(address), key };
    }
    return this.#lastPeer.key + number.toString(16);
  }

  clear(): void {
    this.#byLocalId.clear();
    this.#byRemoteId.clear();
    this.#byRemoteQp.clear();
    this.#timewait.clear();
  }
}
