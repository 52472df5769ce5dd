import { test } from 'uvu';
import { ComObject } from '../../../kernel-bridge/windows/nd-provider/index.js';
import { collect } from '../../helpers/collect.js';
import { clean, Nd2Standin } from './nd2-standin.js';
import { openHost } from './vendor-host.js';

const standin = new Nd2Standin();

clean(test, standin, 'a garbage collection between the arguments of a call and the call', () => {
  const host = openHost();
  const { prototype } = ComObject;
  const call = prototype.call;
  let collects = false;
  prototype.call = function (this: ComObject, ...values: Parameters<typeof call>) {
    if (collects) for (let i = 0; i < 2; i++) collect();
    return call.apply(this, values);
  };
  try {
    // Only optimized code drops the references to memory that it does not use any more.
    for (let i = 0; i < 30_000; i++) host.provider.resolveAddress('127.0.0.1');
    collects = true;
    for (let i = 0; i < 20; i++) host.provider.resolveAddress('127.0.0.1');
  } finally {
    prototype.call = call;
  }
  host.release();
});

test.run();
