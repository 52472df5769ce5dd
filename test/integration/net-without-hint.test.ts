/**
 * `networkdirect/net` over a provider whose completion queues lack `shouldPoll`, so that only notifications end its waits. Runs the same
 * tests of streams, messages, requests and the end of connections as with the hint.
 */
import '../helpers/without-poll-hint.js';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ndCleanup, ndOpenAdapter, ndStartup } from '../../nd/index.js';
import './net-ending.test.js';
import './net-requests.test.js';
import './net-socket.test.js';

test('completion queues lack the hint', () => {
  ndStartup();
  using adapter = ndOpenAdapter('127.0.0.1');
  using queue = adapter.createCompletionQueue(1);
  assert.is(queue.shouldPoll, undefined);
  ndCleanup();
});

test.run();
