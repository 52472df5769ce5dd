// The soft kernel's thread while cache-kernel.mjs uses it: runs the bundle, and hands over V8's code cache of it on request. The cache then has
// the functions that a program needs first.
'use strict';
const { readFileSync } = require('node:fs');
const { createRequire, wrap } = require('node:module');
const { dirname } = require('node:path');
const { Script } = require('node:vm');
const { BroadcastChannel } = require('node:worker_threads');

const bundle = process.env.NETWORKDIRECT_KERNEL_BUNDLE;
const script = new Script(wrap(readFileSync(bundle, 'latin1')), { filename: bundle });
const made = { exports: {} };
script.runInThisContext()(made.exports, createRequire(bundle), made, bundle, dirname(bundle));

const main = new BroadcastChannel(bundle);
main.onmessage = () => {
  main.onmessage = null;
  main.postMessage(script.createCachedData());
  main.close();
};
made.exports.start();
