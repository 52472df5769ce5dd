// MADs of unknown peers. Each turn of the event loop handles only a few of them, so that requests of this process do not wait for many.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BY_WIRE, type HcaEvent } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { KernelRig } from '../helpers/kernel-rig.js';

const test = suite('MADs of strangers');

function mad(n: number, stranger: boolean): HcaEvent {
  const gid = new Uint8Array(16);
  return {
    type: 'mad',
    source: gid,
    destination: gid,
    scopeId: n,
    pkey: 0xffff,
    sender: BY_WIRE,
    stranger,
    mad: new Uint8Array(256),
  };
}

test('sixteen are handled per turn, and all of them eventually', () => {
  const rig = new KernelRig();
  const heard: number[] = [];
  rig.kernel.hcaDriver.onMad = ({ scopeId }) => heard.push(scopeId);
  for (let n = 0; n < 40; n++) rig.hca.events.push(mad(n, true));
  const turns: number[] = [];
  do turns.push(heard.length);
  while (rig.kernel.serveEvents());
  assert.equal(turns, [0, 16, 32]);
  assert.equal(
    heard,
    Array.from({ length: 40 }, (_, n) => n),
  );
});

test('MADs of connections do not count', () => {
  const rig = new KernelRig();
  let heard = 0;
  rig.kernel.hcaDriver.onMad = () => heard++;
  for (let n = 0; n < 300; n++) rig.hca.events.push(mad(n, n % 100 === 0));
  assert.ok(rig.kernel.serveEvents());
  assert.is(heard, 256);
  assert.not.ok(rig.kernel.serveEvents());
  assert.is(heard, 300);
});

test.run();
