/** Connections of RDMA devices: why an attempt has failed, by the events of librdmacm. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CmEventType } from '../../kernel-bridge/hca/verbs-binding.js';
import { QpType } from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import type { CmConnectParameters } from '../../kernel-bridge/kernel/cm/service.js';
import type { CmIds, CmMessage } from '../../kernel-bridge/kernel/verbs-hca/cm-ids.js';
import { VerbsConnection } from '../../kernel-bridge/kernel/verbs-hca/verbs-connection.js';
import { VerbsLookup } from '../../kernel-bridge/kernel/verbs-hca/verbs-lookups.js';

const ID = 7;
const noData = new Uint8Array(0);

/** An event as the addon reports it: failures are NTSTATUS values, as signed words. */
function message(event: keyof typeof CmEventType, status: number): CmMessage {
  const numbers = { responderResources: 0, initiatorDepth: 0, retryCount: 0, rnrRetryCount: 0 };
  return {
    type: 'cm',
    event: CmEventType[event],
    status: status | 0,
    id: ID,
    listener: 0,
    ...numbers,
    srq: false,
    qpn: 0,
    qkey: 0,
    length: 0,
    data: noData,
  };
}

/** librdmacm, where the named calls fail with their status. */
class Ids {
  readonly destroyed: number[] = [];

  constructor(private readonly failing: Readonly<Record<string, number>> = {}) {}

  get ids(): CmIds {
    const call = (name: string) => () => this.failing[name] ?? Status.SUCCESS;
    const calls = Object.fromEntries(
      ['resolve', 'resolveRoute', 'connect', 'accept', 'disconnect', 'setOptions'].map((name) => [
        name,
        call(name),
      ]),
    );
    const destroy = (id: number): void => void this.destroyed.push(id);
    return { ...calls, create: () => ID, adopt: () => {}, destroy } as unknown as CmIds;
  }
}

const parameters = {
  path: { trafficClass: 0 },
  qp: { type: QpType.RC },
  privateData: noData,
  localPort: 0,
  peerPort: 7000,
  ackTimeoutCode: 14,
} as unknown as CmConnectParameters;

/** A connection and the ends of its attempt: a status, or `timeout`. */
function scene(role: 'active' | 'passive', iwarp = false, failing?: Readonly<Record<string, number>>) {
  const native = new Ids(failing);
  const connection = new VerbsConnection({
    ids: native.ids,
    iwarp,
    nextNumber: () => 1,
    known: () => {},
    over: () => {},
  });
  const ends: unknown[] = [];
  const events = {
    timedOut: (status?: number) => void ends.push(status ?? 'timeout'),
    rejected: ({ reason }: { reason: number }) => void ends.push(`reject ${reason}`),
    established: () => void ends.push('established'),
  };
  if (role === 'active') {
    connection.events = events;
    assert.is(connection.connect(parameters), Status.SUCCESS);
  } else {
    connection.adopt(ID, undefined);
    connection.events = events;
    connection.accept({ type: QpType.RC } as never, noData);
  }
  return { connection, ends, native };
}

test('an error while connecting has the status of its event; only a timeout is one', () => {
  for (const [event, status, end] of [
    ['connectError', Status.NETWORK_UNREACHABLE, Status.NETWORK_UNREACHABLE],
    ['connectError', Status.HOST_UNREACHABLE, Status.HOST_UNREACHABLE],
    ['connectError', Status.INSUFFICIENT_RESOURCES, Status.INSUFFICIENT_RESOURCES],
    ['connectError', Status.CONNECTION_ABORTED, Status.CONNECTION_ABORTED],
    ['connectError', Status.IO_TIMEOUT, 'timeout'],
    ['connectError', 0, Status.CONNECTION_ABORTED],
    ['unreachable', Status.IO_TIMEOUT, 'timeout'],
    ['unreachable', Status.NETWORK_UNREACHABLE, Status.NETWORK_UNREACHABLE],
    ['unreachable', 0, 'timeout'],
    // No neighbor has this address.
    ['addressError', Status.IO_TIMEOUT, Status.HOST_UNREACHABLE],
    ['addressError', Status.INVALID_ADDRESS, Status.INVALID_ADDRESS],
    ['routeError', Status.IO_TIMEOUT, 'timeout'],
    ['routeError', Status.INVALID_PARAMETER, Status.INVALID_PARAMETER],
    // Refused by TCP, which has no reason.
    ['rejected', Status.UNSUCCESSFUL, 'reject 28'],
    ['rejected', 8, 'reject 8'],
  ] as const) {
    const { connection, ends, native } = scene('active');
    connection.on(message(event, status));
    assert.equal(ends, [end], `${event} 0x${status.toString(16)}`);
    assert.equal([connection.state, native.destroyed], ['timewait', [ID]]);
  }
});

test('a call that fails while connecting ends the attempt with its status', () => {
  for (const [failing, event] of [
    ['resolveRoute', 'addressResolved'],
    ['connect', 'routeResolved'],
  ] as const) {
    const { connection, ends } = scene('active', false, { [failing]: Status.ACCESS_DENIED });
    connection.on(message(event, 0));
    assert.equal(ends, [Status.ACCESS_DENIED], failing);
  }
});

test('a reply that an iWARP device could not send does not establish the connection', () => {
  const good = scene('passive', true);
  good.connection.on(message('established', 0));
  assert.equal([good.connection.state, good.ends], ['established', ['established']]);
  const bad = scene('passive', true);
  bad.connection.on(message('established', Status.CONNECTION_ABORTED));
  assert.equal([bad.connection.state, bad.ends], ['timewait', [Status.CONNECTION_ABORTED]]);
});

test('a failed accept ends with its status, after the call', async () => {
  const { ends } = scene('passive', false, { accept: Status.INVALID_PARAMETER });
  assert.equal(ends, []);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(ends, [Status.INVALID_PARAMETER]);
});

test('a lookup ends in the same way; a positive status is the peer’s reply', () => {
  for (const [event, status, end] of [
    ['connectError', Status.NETWORK_UNREACHABLE, Status.NETWORK_UNREACHABLE],
    ['unreachable', Status.IO_TIMEOUT, 'timeout'],
    ['unreachable', 3, 'reply 3'],
    ['addressError', Status.IO_TIMEOUT, Status.HOST_UNREACHABLE],
  ] as const) {
    const ends: unknown[] = [];
    const lookup = new VerbsLookup(new Ids().ids, parameters as never, {
      timedOut: (failure) => void ends.push(failure ?? 'timeout'),
      answered: (reply) => void ends.push(`reply ${reply.status}`),
    });
    assert.is(lookup.start(7000), Status.SUCCESS);
    lookup.on(message(event, status));
    assert.equal(ends, [end], event);
  }
});

test.run();
