/** Behavior of sockets that programs for `node:net` rely on. Each case runs with `node:net` and with `networkdirect/net`. */
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { closed, connected, HOST, listening, testEach, textOf, turn } from '../helpers/net-layers.js';

testEach({
  'data written before the connection is established arrives first': async (net) => {
    const received = new Promise<string>((resolve) => {
      const server = net.createServer((socket) => {
        textOf(socket).then(resolve);
        server.close();
      });
      void listening(server).then((port) => {
        const client = net.connect(port, HOST);
        client.write('before, ');
        client.once('connect', () => client.write('after, ', () => client.end('last')));
      });
    });
    assert.is(await received, 'before, after, last');
  },

  'end before the connection is established sends its data': async (net) => {
    const server = net.createServer((socket) => socket.pipe(socket));
    const client = net.connect(await listening(server), HOST).end('all');
    assert.is(await textOf(client), 'all');
    await closed(server);
  },

  'a socket that is destroyed at once does not connect, and closes once': async (net) => {
    const server = net.createServer(() => {});
    const client = net.connect(await listening(server), HOST);
    const events: string[] = [];
    client.on('connect', () => events.push('connect')).on('error', () => events.push('error'));
    client.on('close', (had) => events.push(`close ${had}`));
    client.destroy();
    client.destroy();
    await once(client, 'close');
    await closed(server);
    assert.equal(events, ['close false']);
  },

  'events of a connection come in their order': async (net) => {
    const server = net.createServer((socket) => socket.resume().end());
    const client = net.connect(await listening(server), HOST);
    const events: string[] = [];
    for (const name of ['lookup', 'connect', 'ready', 'end', 'finish', 'close'])
      client.on(name, () => name !== 'lookup' && events.push(name));
    client.resume();
    await once(client, 'close');
    await closed(server);
    assert.equal(events.slice(0, 3), ['connect', 'ready', 'end']);
    assert.is(events.at(-1), 'close');
  },

  'bytes are counted on both sides': async (net) => {
    const counts: number[] = [];
    const server = net.createServer((socket) => {
      socket.resume().on('end', () => {
        counts.push(socket.bytesRead);
        socket.end('four');
      });
    });
    const halfOpen = net.createServer(
      (socket) => {
        socket.resume().on('end', () => {
          counts.push(socket.bytesRead);
          socket.end('four');
        });
      },
      { allowHalfOpen: true },
    );
    await closed(server.listen(0, HOST));
    const client = net.connect(await listening(halfOpen), HOST);
    client.end(Buffer.alloc(100_000));
    assert.is(await textOf(client), 'four');
    await closed(halfOpen);
    assert.equal(counts, [100_000]);
    assert.equal([client.bytesWritten, client.bytesRead], [100_000, 4]);
  },

  'a paused socket keeps received data until it is resumed': async (net) => {
    const server = net.createServer((socket) => socket.end('kept'));
    const client = net.connect(await listening(server), HOST);
    client.pause();
    let text = '';
    client.on('data', (bytes) => (text += bytes));
    await once(client, 'connect');
    client.pause();
    for (let n = 0; n < 20; n += 1) await turn();
    assert.is(text, '');
    client.resume();
    await once(client, 'end');
    assert.is(text, 'kept');
    await closed(server);
  },

  'characters are not broken between chunks': async (net) => {
    const text = 'ä€𝄞'.repeat(50_000);
    const server = net.createServer((socket) => socket.end(text));
    const client = net.connect(await listening(server), HOST).setEncoding('utf8');
    assert.is(await textOf(client), text);
    await closed(server);
  },

  'a write after the end is an error of the writer': async (net) => {
    const server = net.createServer((socket) => socket.resume());
    const client = net.connect(await listening(server), HOST).resume();
    await once(client, 'connect');
    client.end();
    const failed = once(client, 'error');
    client.write('too late');
    const [error] = (await failed) as [NodeJS.ErrnoException];
    assert.is(error.code, 'ERR_STREAM_WRITE_AFTER_END');
    await closed(server);
  },

  'all properties of a closed socket can be read': async (net) => {
    const server = net.createServer((socket) => socket.end());
    const client = net.connect(await listening(server), HOST).resume();
    await once(client, 'close');
    await closed(server);
    assert.equal(
      [client.remoteAddress, client.remotePort, client.readyState],
      [undefined, undefined, 'closed'],
    );
    assert.equal([client.destroyed, client.connecting, client.pending], [true, false, true]);
    client.setTimeout(10);
    client.end();
    client.destroy();
  },

  'a client with allowHalfOpen continues to write after the end of the server': async (net) => {
    let received = '';
    const server = net.createServer(
      (socket) => {
        socket.setEncoding('utf8').on('data', (text) => (received += text));
        socket.end('first');
      },
      { allowHalfOpen: true },
    );
    const client = net.connectHalfOpen(await listening(server));
    assert.is(client.allowHalfOpen, true);
    client.resume();
    await once(client, 'end');
    assert.equal([client.readyState, client.writable], ['writeOnly', true]);
    client.end('last');
    await closed(server);
    assert.is(received, 'last');
  },

  'a client without allowHalfOpen ends after the end of the server': async (net) => {
    const [client, other, server] = await connected(net, { allowHalfOpen: true });
    const ended = once(other.resume(), 'end');
    other.end();
    client.resume();
    await ended;
    await closed(server);
    assert.equal([client.allowHalfOpen, client.writableEnded], [false, true]);
  },

  'the state of a socket follows its connection': async (net) => {
    const server = net.createServer((socket) => socket.resume());
    const client = net.connect(await listening(server), HOST);
    const states: unknown[][] = [];
    const look = (): void =>
      void states.push([client.readyState, client.connecting, client.pending, client.destroyed]);
    look();
    client.once('connect', look);
    await once(client, 'connect');
    client.end();
    look();
    client.destroy();
    look();
    await once(client, 'close');
    await closed(server);
    assert.equal(states, [
      ['opening', true, true, false],
      ['open', false, false, false],
      ['readOnly', false, false, false],
      ['closed', false, true, true],
    ]);
  },

  'the listener of connect, the last argument, is called once': async (net) => {
    const server = net.createServer((socket) => socket.end());
    const port = await listening(server);
    let calls = 0;
    const client = net.connect(port, HOST, () => (calls += 1)).resume();
    await once(client, 'close');
    await closed(server);
    assert.is(calls, 1);
  },

  'a silent connection has a timeout, and stays open': async (net) => {
    const [client, other, server] = await connected(net);
    let calls = 0;
    client.setTimeout(20, () => (calls += 1));
    assert.is(client.timeout, 20);
    await once(client, 'timeout');
    assert.equal([calls, client.destroyed], [1, false]);
    client.setTimeout(0);
    assert.is(client.timeout, 0);
    client.end();
    other.resume();
    await closed(server);
  },

  'traffic postpones the timeout': async (net) => {
    const [client, other, server] = await connected(net);
    let timeouts = 0;
    client.setTimeout(400).on('timeout', () => (timeouts += 1));
    other.pipe(other);
    client.resume();
    const end = performance.now() + 900;
    while (performance.now() < end) {
      client.write('x');
      await once(client, 'data');
    }
    assert.is(timeouts, 0);
    client.end();
    await closed(server);
  },

  'an invalid time throws': async (net) => {
    const [client, other, server] = await connected(net);
    const code = (time: unknown): unknown => {
      try {
        client.setTimeout(time as number);
        return 'taken';
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      }
    };
    assert.equal(['100', undefined, -1, Number.NaN, Number.POSITIVE_INFINITY].map(code), [
      'ERR_INVALID_ARG_TYPE',
      'ERR_INVALID_ARG_TYPE',
      'ERR_OUT_OF_RANGE',
      'ERR_OUT_OF_RANGE',
      'ERR_OUT_OF_RANGE',
    ]);
    client.destroy();
    other.resume();
    await closed(server);
  },

  'destroySoon sends what was written first': async (net) => {
    const text = 'all of it '.repeat(100_000);
    const server = net.createServer((socket) => {
      socket.write(text);
      socket.destroySoon();
    });
    const client = net.connect(await listening(server), HOST);
    assert.is(await textOf(client), text);
    await closed(server);
  },

  'bytesWritten counts queued data as well': async (net) => {
    const server = net.createServer((socket) => socket.resume());
    const client = net.connect(await listening(server), HOST).resume();
    client.write(Buffer.alloc(300_000));
    client.write('ä');
    assert.is(client.bytesWritten, 300_002);
    await new Promise<void>((resolve) => client.end('end', resolve));
    assert.is(client.bytesWritten, 300_005);
    await closed(server);
  },

  'callbacks of writes come in order, and encodings are supported': async (net) => {
    const server = net.createServer((socket) => socket.pipe(socket));
    const client = net.connect(await listening(server), HOST);
    const order: number[] = [];
    client.write('6162', 'hex', () => order.push(1));
    client.write('Y2Q=', 'base64', () => order.push(2));
    client.write(new Uint8Array([0x65]), () => order.push(3));
    client.end('f');
    assert.is(await textOf(client), 'abcdef');
    assert.equal(order, [1, 2, 3]);
    await closed(server);
  },

  'a write of anything but bytes throws': async (net) => {
    const [client, other, server] = await connected(net);
    for (const wrong of [1, true, {}, undefined, null])
      assert.throws(
        () => client.write(wrong as unknown as string),
        ({ code }: NodeJS.ErrnoException) =>
          code === (wrong === null ? 'ERR_STREAM_NULL_VALUES' : 'ERR_INVALID_ARG_TYPE'),
      );
    client.destroy();
    other.resume();
    await closed(server);
  },

  'a write to a destroyed socket fails without an event': async (net) => {
    const [client, other, server] = await connected(net);
    other.resume();
    client.on('error', (error) => assert.unreachable(String(error)));
    client.destroy();
    const error = await new Promise<NodeJS.ErrnoException>((resolve) =>
      client.write('x', (failure) => resolve(failure as NodeJS.ErrnoException)),
    );
    assert.is(error.code, 'ERR_STREAM_DESTROYED');
    await closed(server);
  },

  'destroy with an error: error, then close, once each, whatever follows': async (net) => {
    const [client, other, server] = await connected(net);
    other.on('error', () => {}).resume();
    const events: string[] = [];
    client
      .on('error', ({ message }) => events.push(message))
      .on('close', (had) => events.push(`close ${had}`));
    const closing = new Promise((resolve) => client.once('close', resolve));
    client.destroy(new Error('first'));
    client.destroy(new Error('second'));
    await closing;
    await closed(server);
    assert.equal(events, ['first', 'close true']);
  },

  'resetAndDestroy is an error on the peer only': async (net) => {
    const [client, other, server] = await connected(net);
    client.on('error', (error) => assert.unreachable(String(error)));
    const failed = once(other.resume(), 'error');
    client.resetAndDestroy();
    const [error] = (await failed) as [NodeJS.ErrnoException];
    assert.is(error.code, 'ECONNRESET');
    await closed(server);
  },

  'pause within a data event stops it there, and resume continues': async (net) => {
    const total = 400_000;
    const server = net.createServer((socket) => socket.end(Buffer.alloc(total, 'x')));
    const client = net.connect(await listening(server), HOST);
    let [count, pauses, paused] = [0, 0, false];
    client.on('data', ({ length }) => {
      assert.is(paused, false);
      count += length;
      pauses += 1;
      paused = true;
      client.pause();
      setImmediate(() => {
        paused = false;
        client.resume();
      });
    });
    await once(client, 'end');
    assert.is(count, total);
    assert.ok(pauses > 1, `${pauses}`);
    await closed(server);
  },

  'ping and pong, a thousand times, in order': async (net) => {
    const server = net.createServer((socket) => {
      socket.setEncoding('utf8').on('data', (text) => socket.write(String(text).replace('ping', 'pong')));
    });
    const client = net.connect(await listening(server), HOST).setEncoding('utf8');
    for (let n = 0; n < 1000; n += 1) {
      client.write(`ping ${n}`);
      const [text] = await once(client, 'data');
      assert.is(text, `pong ${n}`);
    }
    client.end();
    await once(client, 'close');
    await closed(server);
  },
});

test.run();
