/** Connections of protocols with separate port spaces, which only ND SPI v1 has. Both sides are in this process. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS } from '../../nd/cli/sides/connected-side.js';
import { HostV1 } from '../../nd/cli/sides/v1-side.js';
import { Status } from '../../nd/index.js';
import { endsIn } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

test('each protocol has its own ports', async () => {
  const host = new HostV1();
  const { port } = host.listener;
  const listeners = new Map(
    [123, 6, 0].map((protocol) => {
      const at = protocol === 6 ? host.listener : host.adapter.listen({ port, protocol });
      return [protocol, at] as const;
    }),
  );
  for (const [protocol, listener] of listeners) {
    const active = host.newSide();
    const passive = host.newSide();
    const asked = listener.getConnectionRequest(passive.connector);
    const address = { family: 4, address: ADDRESS, port } as const;
    const connected = active.connector.connect(active.endpoint, address, {
      protocol,
      privateData: Uint8Array.of(protocol),
    });
    await asked;
    assert.is(passive.connector.getConnectionData().privateData[0], protocol);
    assert.equal(passive.connector.getPeerAddress(), active.connector.getLocalAddress());
    passive.connector.reject();
    assert.is(await outcome(connected), Status.CONNECTION_REFUSED);
    // The same connector connects in the port space of a protocol without a listener.
    const nobody = active.connector.connect(active.endpoint, address, { protocol: 250 });
    assert.is(await outcome(nobody), Status.CONNECTION_REFUSED);
    passive.release();
    active.release();
  }
  endsIn(() => host.adapter.listen({ port, protocol: 123 }), Status.ADDRESS_ALREADY_EXISTS);
  for (const [protocol, listener] of listeners) if (protocol !== 6) listener.release();
  host.release();
});

test.run();
