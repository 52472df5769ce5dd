import {
  gidBytes,
  madAt,
  madBytes,
  type PathParameters,
  putAttributes,
  putMad,
  putPath,
  putQpCreate,
  putSrqAttributes,
  putSrqCreate,
  type QpAttributeValues,
  type QpCreateParameters,
  QpMask,
  type SharedWords,
  type SrqAttributeValues,
  type SrqCreateParameters,
} from '../schema/generated/attributes.js';
import { eventOf, type HcaEvent, word } from '../schema/generated/events.js';
import type { ConnectAttributes, ConnectSteps } from './hca-parameters.js';
import type { HcaCommands } from './native-hca.js';
import type { SoftHca } from './soft-hca-binding.js';

/** INVALID_PARAMETER, as native code returns it. */
const invalidParameter = 0xc000_000d;

/** A command of native code: numbers and flags as arguments, a status as the result. */
export type RawCommand = (...values: readonly (number | boolean)[]) => number;

/** Commands of {@link HcaCommands} that both addons implement. */
type Commands =
  | 'allocatePd'
  | 'deallocatePd'
  | 'registerMr'
  | 'deregisterMr'
  | 'allocateMw'
  | 'deallocateMw'
  | 'createCq'
  | 'resizeCq'
  | 'destroyCq'
  | 'armCq'
  | 'listenCq'
  | 'createQp'
  | 'modifyQp'
  | 'connectQp'
  | 'queryQpState'
  | 'destroyQp'
  | 'createSrq'
  | 'modifySrq'
  | 'querySrq'
  | 'destroySrq'
  | 'createAh'
  | 'destroyAh'
  | 'attachMulticast'
  | 'detachMulticast';

/**
 * The commands of an HCA as implemented by native code (addon/command_face.h), functions that belong to one HCA.
 * Records, paths and groups are passed in its words and bytes, where results begin at word 0: reused memory, because
 * Node-API creates a string for each member name that it reads.
 */
export type RawCommands = Readonly<Record<Commands, RawCommand>> & Pick<HcaCommands, 'queryQp'>;

/** The commands of {@link HcaCommands} over those of native code. `owner` is the owner of created objects. */
export function commandsOf(raw: RawCommands, shared: SharedWords, owner: () => number) {
  // Objects with this many members are slow to read.
  const { createQp, modifyQp, connectQp } = raw;
  const { words, bytes } = shared;

  /** Writes the group as an argument. Returns false if it is not an address. */
  const putGroup = (group: Uint8Array): boolean => {
    if (!(group instanceof Uint8Array) || group.length !== gidBytes) return false;
    bytes.set(group, 0);
    return true;
  };
  return {
    ...raw,
    allocatePd() {
      return { status: raw.allocatePd(owner()), pd: word(words, 0) };
    },
    registerMr(pd: number, address: number, length: number, access: number) {
      const status = raw.registerMr(pd, address, length, access);
      return { status, lkey: word(words, 0), rkey: word(words, 1) };
    },
    allocateMw(pd: number) {
      return { status: raw.allocateMw(pd), mw: word(words, 0), rkey: word(words, 1) };
    },
    createCq(ringAddress: number, ringBytes: number, entries: number) {
      return { status: raw.createCq(owner(), ringAddress, ringBytes, entries), cq: word(words, 0) };
    },
    createQp(parameters: QpCreateParameters) {
      putQpCreate(shared, parameters);
      return { status: createQp(), qp: word(words, 0), qpn: word(words, 1) };
    },
    modifyQp(qp: number, mask: number, attributes: Partial<QpAttributeValues>) {
      putAttributes(shared, attributes);
      if ((mask & QpMask.path) !== 0 && !putPath(shared, attributes.path)) return invalidParameter;
      return modifyQp(qp, mask);
    },
    /** `connection`: for real HCAs, the id whose negotiated attributes apply. */
    connectQp(
      qp: number,
      { init, rtr, rts }: ConnectSteps,
      attributes: ConnectAttributes,
      connection = 0,
    ): number {
      putAttributes(shared, attributes);
      return putPath(shared, attributes.path) ? connectQp(qp, init, rtr, rts, connection) : invalidParameter;
    },
    createSrq(parameters: SrqCreateParameters) {
      putSrqCreate(shared, parameters);
      return { status: raw.createSrq(), srq: word(words, 0) };
    },
    modifySrq(srq: number, mask: number, attributes: Partial<SrqAttributeValues>) {
      putSrqAttributes(shared, attributes);
      return raw.modifySrq(srq, mask);
    },
    querySrq(srq: number) {
      const status = raw.querySrq(srq);
      return { status, entries: word(words, 0), limit: word(words, 1), sge: word(words, 2) };
    },
    createAh(pd: number, path: PathParameters, pathMtu: number) {
      if (!putPath(shared, path)) return { status: invalidParameter, ah: 0 };
      return { status: raw.createAh(pd, pathMtu), ah: word(words, 0) };
    },
    attachMulticast(qp: number, group: Uint8Array, interfaceIndex: number) {
      return putGroup(group) ? raw.attachMulticast(qp, interfaceIndex) : invalidParameter;
    },
    detachMulticast(qp: number, group: Uint8Array, interfaceIndex: number) {
      return putGroup(group) ? raw.detachMulticast(qp, interfaceIndex) : invalidParameter;
    },
  } satisfies Pick<HcaCommands, Commands>;
}

/** Commands that only the software HCA has, and those that take or return more than numbers. */
type SoftCommands =
  | 'allocateMr'
  | 'createPkeyTable'
  | 'queryPkeyTable'
  | 'setDreqOnExit'
  | 'sendMad'
  | 'claimPort'
  | 'takeEvent';

/** The software HCA as created by native code (addon/hca.h). */
export interface RawHca
  extends Omit<SoftHca, Commands | SoftCommands | 'queryQp' | 'destroyPkeyTable'>,
    SharedWords {
  readonly commands: RawCommands &
    Readonly<Record<SoftCommands, RawCommand>> &
    Pick<SoftHca, 'destroyPkeyTable'>;
}

/** Adds the commands that take and create objects to native code's software HCA. */
export function softHcaOf(raw: RawHca): SoftHca {
  const { commands, kernelId, words, bytes } = raw;
  const { setDreqOnExit, sendMad, claimPort, takeEvent, allocateMr, createPkeyTable, queryPkeyTable } =
    commands;
  const shared: SharedWords = { words, bytes };
  const taken = bytes.subarray(madAt, madAt + madBytes);

  return Object.assign(
    raw,
    commandsOf(commands, shared, () => kernelId),
    {
      destroyPkeyTable: commands.destroyPkeyTable,
      allocateMr(pd: number, length: number) {
        return { status: allocateMr(pd, length), lkey: word(words, 0) };
      },
      createPkeyTable() {
        return { status: createPkeyTable(kernelId), table: word(words, 0) };
      },
      queryPkeyTable(table: number) {
        const status = queryPkeyTable(kernelId, table);
        return { status, badPkeys: words[0]!, badQkeys: words[1]! };
      },
      setDreqOnExit(qp: number, path: PathParameters, mad: Uint8Array) {
        return putPath(shared, path) && putMad(shared, mad) ? setDreqOnExit(qp) : invalidParameter;
      },
      sendMad(path: PathParameters, mad: Uint8Array, pkey = 0xffff) {
        return putPath(shared, path) && putMad(shared, mad) ? sendMad(pkey) : invalidParameter;
      },
      /** `one`: the address is passed as the source of a path. */
      claimPort(service: number, address: Uint8Array | null, port: number) {
        if (address !== null) {
          if (address.length !== gidBytes) return { status: invalidParameter, claim: 0, port: 0 };
          bytes.set(address, 0);
        }
        const status = claimPort(service, port, address !== null);
        return { status, claim: word(words, 0), port: word(words, 1) };
      },
      takeEvent(alsoStrangers = true): HcaEvent | undefined {
        return eventOf(takeEvent(alsoStrangers), shared, taken);
      },
    },
  );
}
