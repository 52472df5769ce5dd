/** Connector features that only v1 has: a protocol, and a local port for each Connect. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Status } from '../../nd/index.js';
import { PEER, RigV1 } from '../helpers/nd-connector-rig.js';
import { endsIn } from '../helpers/nd-fixture.js';

test('an invalid protocol or local port is rejected and has no effect', () => {
  const { connector, queuePair } = new RigV1();
  for (const [options, status] of [
    [{ protocol: 17 }, Status.NOT_SUPPORTED],
    [{ protocol: 256 }, Status.INVALID_PARAMETER_3],
    [{ localPort: -1 }, Status.INVALID_PARAMETER],
  ] as const) {
    endsIn(() => connector.connect(queuePair, PEER, options), status);
  }
  assert.is(connector.state, 'Idle');
});

test('an endpoint that waited for a request is not used to connect in another protocol’s port space', () => {
  const rig = new RigV1().bring('Queued');
  rig.connector.cancelOverlappedRequests();
  rig.listening.request('getRequest').fail(Status.CANCELED);
  assert.is(rig.connector.state, 'Idle');
  const waited = rig.wv;
  rig.connector.connect(rig.queuePair, PEER, { protocol: 200 });
  assert.is.not(rig.wv, waited);
  assert.is(rig.wv.protocol, 200);
});

test.run();
