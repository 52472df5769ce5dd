// Changes of the host's interfaces are reported to waiting requests. Runs in its own network namespace.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PortState, WvEvent } from '../../kernel-bridge/index.js';
import { needing } from '../helpers/needs.js';
import { inNewNetwork } from '../helpers/network-namespace.js';

const program = fileURLToPath(new URL('../helpers/port-events-program.js', import.meta.url));
needing(test, 'namespaces')(
  'addresses, link addresses, carrier and removal are reported; flags accumulate while no request waits',
  async () => {
    const [file, ...args] = inNewNetwork(process.execPath, program);
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const [code] = await once(child, 'close');
    assert.is(code, 0);
    const { ADDRESS, LINK_ADDRESS, STATE } = WvEvent;
    const told = JSON.parse(text) as Record<string, number> &
      Record<'removed' | 'withoutCarrier' | 'withCarrier' | 'cancelled' | 'oldest' | 'none', unknown> &
      Record<'noPort' | 'afterwards', unknown>;
    assert.is(told.address, ADDRESS);
    assert.is(told.linkAddress, LINK_ADDRESS);
    assert.is(told.down! & STATE, STATE);
    assert.is(told.up! & STATE, STATE);
    assert.is(told.accumulated, STATE | ADDRESS);
    // A port without a carrier keeps its addresses and its MTU. The latest MTU is reported.
    assert.equal(told.withoutCarrier, [PortState.DOWN, 1024, 2]);
    assert.equal(told.withCarrier, [PortState.ACTIVE, 4096, 1]);
    assert.is(told.cancelled, 'CANCELED');
    assert.equal(told.oldest, [ADDRESS, false], 'one event ends one wait');
    assert.is(told.next, ADDRESS);
    assert.equal(told.none, ['CANCELED', 'CANCELED']);
    assert.is(told.kept, ADDRESS | LINK_ADDRESS);
    assert.is(told.noPort, 'INVALID_PORT_HANDLE');
    assert.equal(told.removed, Array(4).fill('DEVICE_REMOVED'));
    assert.is(told.afterwards, 'DEVICE_REMOVED');
    assert.is(told.removing, 1, 'the device waits for its three instances');
    assert.is(told.after, 0);
  },
);

test.run();
