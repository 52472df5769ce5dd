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
import type { SoftHca } from './binding.js';
import type { ConnectAttributes, ConnectSteps } from './hca-parameters.js';

/** INVALID_PARAMETER, as native code returns it. */
const invalidParameter = 0xc000_000d;

/** Commands that {@link hcaOfWords} gives the shape of {@link SoftHca}. */
type Commands =
  | 'createQp'
  | 'modifyQp'
  | 'connectQp'
  | 'setWill'
  | 'sendMad'
  | 'claimPort'
  | 'takeEvent'
  | 'queryQpState'
  | 'createSrq'
  | 'modifySrq'
  | 'createAh';

/**
 * The native HCA. Arguments and results that every connection needs are numbers in `words` and bytes in `bytes`, reused
 * memory, because Node-API makes a string for each member name that it reads.
 */
export interface RawHca extends Omit<SoftHca, Commands>, SharedWords {
  readonly methods: WordMethods;
  /** Words: as {@link putSrqCreate}; afterwards the SRQ. */
  createSrqWords(): number;
  /** Words: as {@link putSrqAttributes}, those of the mask. */
  modifySrqWords(srq: number, mask: number): number;
  /** The path. Words afterwards: the address handle. */
  createAhWords(pd: number, pathMtu: number): number;
}

/** Methods that each connection calls: functions bound to their HCA (addon/own_methods.h). */
export interface WordMethods {
  /** Words: parameters in the order of {@link putQpCreate}; afterwards QP and QPN. */
  createQpWords(): number;
  /** Words: attributes in the order of {@link putAttributes}, those of the mask; and the path. */
  modifyQpWords(qp: number, mask: number): number;
  /** The same words, those of the three masks; the states are ignored. */
  connectQpWords(qp: number, init: number, rtr: number, rts: number): number;
  /** The path and the MAD. */
  setWillWords(qp: number): number;
  sendMadWords(pkey: number): number;
  /** `one`: the address is in the place of a path's source. Words afterwards: claim and port. */
  claimPortWords(service: number, port: number, one: boolean): number;
  /** The kind of the next event, 0: none. Its data is in the words and bytes. */
  takeEventWords(alsoStrangers: boolean): number;
  queryQpState(qp: number): number;
}

/** Gives native code's HCA the commands that take and make objects. */
export function hcaOfWords(raw: RawHca): SoftHca {
  const { createQpWords, modifyQpWords, connectQpWords, setWillWords } = raw.methods;
  const { sendMadWords, claimPortWords, takeEventWords, queryQpState } = raw.methods;
  const { words, bytes } = raw;
  const shared: SharedWords = { words, bytes };
  const taken = shared.bytes.subarray(madAt, madAt + madBytes);

  const commands: Pick<SoftHca, Commands> = {
    queryQpState,
    createQp(parameters: QpCreateParameters) {
      putQpCreate(shared, parameters);
      const status = createQpWords();
      return { status, qp: word(words, 0), qpn: word(words, 1) };
    },
    modifyQp(qp: number, mask: number, attributes: Partial<QpAttributeValues>) {
      putAttributes(shared, attributes);
      if ((mask & QpMask.path) !== 0 && !putPath(shared, attributes.path)) return invalidParameter;
      return modifyQpWords(qp, mask);
    },
    connectQp(qp: number, { init, rtr, rts }: ConnectSteps, attributes: ConnectAttributes) {
      putAttributes(shared, attributes);
      return putPath(shared, attributes.path) ? connectQpWords(qp, init, rtr, rts) : invalidParameter;
    },
    createSrq(parameters: SrqCreateParameters) {
      putSrqCreate(shared, parameters);
      const status = raw.createSrqWords();
      return { status, srq: word(words, 0) };
    },
    modifySrq(srq: number, mask: number, attributes: Partial<SrqAttributeValues>) {
      putSrqAttributes(shared, attributes);
      return raw.modifySrqWords(srq, mask);
    },
    createAh(pd: number, path: PathParameters, pathMtu: number) {
      if (!putPath(shared, path)) return { status: invalidParameter, ah: 0 };
      const status = raw.createAhWords(pd, pathMtu);
      return { status, ah: word(words, 0) };
    },
    setWill(qp: number, path: PathParameters, mad: Uint8Array) {
      return putPath(shared, path) && putMad(shared, mad) ? setWillWords(qp) : invalidParameter;
    },
    sendMad(path: PathParameters, mad: Uint8Array, pkey = 0xffff) {
      return putPath(shared, path) && putMad(shared, mad) ? sendMadWords(pkey) : invalidParameter;
    },
    claimPort(service: number, address: Uint8Array | null, port: number) {
      if (address !== null) {
        if (address.length !== gidBytes) return { status: invalidParameter, claim: 0, port: 0 };
        shared.bytes.set(address, 0);
      }
      const status = claimPortWords(service, port, address !== null);
      return { status, claim: word(words, 0), port: word(words, 1) };
    },
    takeEvent(alsoStrangers = true): HcaEvent | undefined {
      return eventOf(takeEventWords(alsoStrangers), shared, taken);
    },
  };
  return Object.assign(raw, commands);
}
