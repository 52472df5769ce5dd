/** Complete private data of every message that carries some, and rejections in both directions, also for SIDR. */
import assert from 'node:assert/strict';
import { Status, WvDatagram } from '../../../winverbs/index.js';
import { outcome } from '../../helpers/outcome.js';
import { type CmHosts, connectTo, data, end, ours, padded, Reason, step, WE_ANSWER } from './cm-guest.js';
import { socketAddress } from './interop-side.js';

/** Bytes for the application (IBA 1 §12.6; a REQ and a SIDR_REQ begin with the header of annex A11). */
const Room = { REQ: 56, REP: 196, REJ: 148, SIDR_REQ: 180, SIDR_REP: 136 } as const;
/** We connect, and each side gets the complete data of the other. */
export async function privateOfOurs(hosts: CmHosts): Promise<void> {
  const listener = await hosts.listen();
  for (const length of [0, 1, Room.REQ]) {
    await step(`REQ with ${length} bytes, REP with ${Room.REP}`, async () => {
      const [asked, answered] = [data(length, 1), data(Room.REP, 2)];
      const made = await connectTo(hosts, listener, { privateData: asked }, { privateData: answered });
      assert.deepEqual(made.seen, padded(asked, Room.REQ));
      assert.deepEqual(made.endpoint.query().privateData, answered);
      await end(hosts, made);
    });
  }
  for (const ece of [false, true]) {
    const reason = ece ? 'a vendor option' : 'the consumer';
    await step(`the guest rejects the request: ${reason}`, async () => {
      const endpoint = hosts.endpoint();
      const qp = hosts.queuePair();
      const connecting = outcome(endpoint.connect(qp, hosts.there, {}));
      const { id } = await hosts.request(listener);
      const reported = data(Room.REJ, 3);
      await hosts.reject(id, reported, { ece });
      assert.equal(await connecting, Status.CONNECTION_REFUSED);
      assert.deepEqual(endpoint.query().privateData, reported);
      await hosts.destroy(id);
      endpoint.release();
      qp.release();
    });
  }
  await step('we reject the reply', async () => {
    const endpoint = hosts.endpoint();
    const qp = hosts.queuePair();
    const connecting = endpoint.connect(qp, hosts.there, {});
    const { id } = await hosts.request(listener);
    await hosts.accept(id);
    await connecting;
    const reported = data(Room.REJ, 4);
    endpoint.reject(reported);
    const { status, privateData } = await hosts.happened(id, 'REJECTED');
    assert.equal(status, Reason.consumer);
    assert.deepEqual(privateData, reported);
    await hosts.destroy(id);
    endpoint.release();
    qp.release();
  });
  await step('no listener there', async () => {
    const endpoint = hosts.endpoint();
    await hosts.destroy(listener);
    const before = ours('received.REJ');
    const status = await outcome(endpoint.connect(hosts.queuePair(), hosts.there, {}));
    assert.equal(status, Status.CONNECTION_REFUSED);
    assert.equal(ours('received.REJ') - before, 1);
    endpoint.release();
  });
}

/** The guest connects. */
export async function privateOfTheirs(hosts: CmHosts): Promise<void> {
  using listener = hosts.listener();
  for (const length of [0, 1, Room.REQ]) {
    await step(`REQ and REP with ${length} bytes`, async () => {
      const [asked, answered] = [data(length, 5), data(length, 6)];
      const theirs = await hosts.connect({ privateData: asked });
      const endpoint = await listener.next();
      assert.deepEqual(endpoint.query().privateData, padded(asked, Room.REQ));
      assert.equal(endpoint.query().peerAddress?.address, hosts.guest);
      const qp = hosts.queuePair();
      const accepting = endpoint.accept(qp, { privateData: answered });
      const { privateData } = await hosts.happened(theirs, 'ESTABLISHED');
      assert.deepEqual(privateData, padded(answered, Room.REP));
      await accepting;
      await end(hosts, { endpoint, qp, theirs });
    });
  }
  await step('we reject the request', async () => {
    const theirs = await hosts.connect({});
    const endpoint = await listener.next();
    const reported = data(Room.REJ, 7);
    endpoint.reject(reported);
    const { status, privateData } = await hosts.happened(theirs, 'REJECTED');
    assert.equal(status, Reason.consumer);
    assert.deepEqual(privateData, reported);
    await hosts.destroy(theirs);
    endpoint.release();
  });
  for (const ece of [false, true]) {
    const reason = ece ? 'a vendor option' : 'the consumer';
    await step(`the guest rejects the reply: ${reason}`, async () => {
      const theirs = await hosts.connect({ qp: false });
      const endpoint = await listener.next();
      const qp = hosts.queuePair();
      const accepting = outcome(endpoint.accept(qp, {}));
      await hosts.happened(theirs, 'CONNECT_RESPONSE');
      const reported = data(Room.REJ, 8);
      await hosts.reject(theirs, reported, { ece });
      assert.equal(await accepting, Status.CONNECTION_REFUSED);
      assert.deepEqual(endpoint.query().privateData, reported);
      await hosts.destroy(theirs);
      endpoint.release();
      qp.release();
    });
  }
  await step('no listener here', async () => {
    const theirs = await hosts.connect({ port: NOBODY });
    const { status } = await hosts.happened(theirs, 'REJECTED');
    assert.equal(status, Reason.nobodyThere);
    await hosts.destroy(theirs);
  });
}

/** A port without a listener. */
const NOBODY = 998;
/** SIDR_REP status (IBA 1 §12.6.9). */
const SIDR_REJECTED = 2;

/** We look up a queue pair of the guest. */
export async function sidrOfOurs(hosts: CmHosts): Promise<void> {
  const listener = await hosts.listen('udp');
  const endpoint = hosts.side.provider.createDatagramEndpoint();
  endpoint.bindAddress(socketAddress(hosts.own, 0));
  for (const length of [0, 1, Room.SIDR_REQ]) {
    await step(`SIDR_REQ with ${length} bytes, SIDR_REP with ${Room.SIDR_REP}`, async () => {
      const [asked, answered] = [data(length, 9), data(Room.SIDR_REP, 10)];
      const looking = endpoint.lookup(hosts.there, asked);
      const { id, privateData } = await hosts.request(listener);
      assert.deepEqual(privateData, padded(asked, Room.SIDR_REQ));
      await hosts.accept(id, { privateData: answered, qp: false });
      const found = await looking;
      assert.deepEqual(found.privateData, answered);
      assert.equal(found.qpn, hosts.number);
      assert.equal(found.qkey, WvDatagram.QKEY);
      await hosts.destroy(id);
    });
  }
  await step('the guest rejects the lookup', async () => {
    const looking = outcome(endpoint.lookup(hosts.there));
    const { id } = await hosts.request(listener);
    const reported = data(Room.SIDR_REP, 11);
    await hosts.reject(id, reported);
    assert.equal(await looking, Status.CONNECTION_REFUSED);
    const { sidrStatus, privateData } = endpoint.query(hosts.there);
    assert.equal(sidrStatus, SIDR_REJECTED);
    assert.deepEqual(privateData, reported);
    await hosts.destroy(id);
  });
  endpoint.release();
}

/** The guest looks up a queue pair of ours. */
export async function sidrOfTheirs(hosts: CmHosts): Promise<void> {
  const listener = hosts.side.provider.createDatagramEndpoint();
  listener.bindAddress(socketAddress(hosts.own, WE_ANSWER));
  listener.listen(4);
  const next = async () => {
    const endpoint = hosts.side.provider.createDatagramEndpoint();
    await listener.getRequest(endpoint);
    return endpoint;
  };
  const { cq } = hosts.side.queue(4);
  const sizes = { sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 };
  const qp = hosts.side.pd.createDatagramQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
  qp.start(WvDatagram.QKEY);
  for (const length of [0, 1, Room.SIDR_REQ]) {
    await step(`SIDR_REQ with ${length} bytes, SIDR_REP with up to ${Room.SIDR_REP}`, async () => {
      const [asked, answered] = [data(length, 12), data(Math.min(length, Room.SIDR_REP), 13)];
      const theirs = await hosts.connect({ ps: 'udp', port: WE_ANSWER, privateData: asked });
      const endpoint = await next();
      assert.deepEqual(endpoint.query().privateData, padded(asked, Room.SIDR_REQ));
      await endpoint.accept({ qp, privateData: answered });
      const found = await hosts.happened(theirs, 'ESTABLISHED');
      assert.deepEqual(found.privateData, padded(answered, Room.SIDR_REP));
      assert.equal(found.qpn, qp.qpn);
      assert.equal(found.qkey, WvDatagram.QKEY);
      await hosts.destroy(theirs);
      endpoint.release();
    });
  }
  await step('we reject the lookup', async () => {
    const theirs = await hosts.connect({ ps: 'udp', port: WE_ANSWER });
    const endpoint = await next();
    const reported = data(Room.SIDR_REP, 14);
    endpoint.reject(reported);
    const { status } = await hosts.happened(theirs, 'UNREACHABLE');
    assert.equal(status, SIDR_REJECTED);
    await hosts.destroy(theirs);
    endpoint.release();
  });
  await step('no listener here', async () => {
    const theirs = await hosts.connect({ ps: 'udp', port: NOBODY });
    const { status } = await hosts.happened(theirs, 'UNREACHABLE');
    assert.equal(status, 1);
    await hosts.destroy(theirs);
  });
  qp.release();
  listener.release();
}
