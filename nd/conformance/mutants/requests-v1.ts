/** Broken requests: endpoints of SPI v1. */
import { NdError, type NdMemoryHandle, NdMwDescriptor, NdOpFlag, type NdSge, Status } from '../../index.js';
import { around, insteadOf, type Mutant, mutantV1 } from './mutant.js';

const { SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE } = NdOpFlag;

/** Remote memory for a request of 0 bytes, which needs no memory. */
const nowhere = new NdMwDescriptor(0n, 0n, 0);

/** Returns the length of memory, which the cases give as an object. */
function lengthOf(memory: NdMemoryHandle | number): number {
  return typeof memory === 'number' ? 0 : memory.length;
}

/** Throws for a list with memory beyond a registration. */
function checkEnds(sgl: readonly NdSge[]): void {
  for (const { memory, offset, length } of sgl) {
    if (typeof memory === 'object' && offset + length > memory.length) {
      throw new NdError(Status.ACCESS_VIOLATION, 'The entry ends beyond its memory.');
    }
  }
}

/** Returns the list with its last entry one byte shorter. */
function shorter(sgl: readonly NdSge[]): NdSge[] {
  return sgl.map((sge, i) => (i === sgl.length - 1 ? { ...sge, length: Math.max(sge.length - 1, 0) } : sge));
}

export const requestMutants: readonly Mutant[] = [
  mutantV1('flush-nothing', 'Flush does nothing', 'queue.flush-never-connected', {
    endpoint(endpoint) {
      endpoint.flush = () => {};
    },
  }),
  mutantV1('lose-when-full', 'A request on a full queue is lost silently', 'queue.send-depth', {
    endpoint(endpoint) {
      around(endpoint, 'send', (send) => (...args) => {
        insteadOf(
          Status.NO_MORE_ENTRIES,
          () => send(...args),
          () => {},
        );
      });
    },
  }),
  mutantV1('depth-less-one', 'Receive queues have one entry less than requested', 'queue.receive-depth', {
    connector(connector) {
      around(
        connector,
        'createEndpoint',
        (create) => (options) =>
          create({ ...options, inboundEntries: Math.max(options.inboundEntries - 1, 1) }),
      );
    },
  }),
  mutantV1('never-silent', 'SILENT_SUCCESS is ignored', 'queue.silent-success', {
    endpoint(endpoint) {
      around(
        endpoint,
        'send',
        (send) =>
          (result, sgl, flags = 0) =>
            send(result, sgl, flags & ~SILENT_SUCCESS),
      );
    },
  }),
  mutantV1('always-silent', 'Writes never have a result', 'queue.initiator-order', {
    endpoint(endpoint) {
      around(
        endpoint,
        'write',
        (write) =>
          (result, sgl, remote, offset, flags = 0) =>
            write(result, sgl, remote, offset, flags | SILENT_SUCCESS),
      );
    },
  }),
  mutantV1('no-fence', 'READ_FENCE is ignored', 'transfer.read-fence', {
    endpoint(endpoint) {
      around(
        endpoint,
        'write',
        (write) =>
          (result, sgl, remote, offset, flags = 0) =>
            write(result, sgl, remote, offset, flags & ~READ_FENCE),
      );
    },
  }),
  mutantV1('never-solicit', 'SEND_AND_SOLICIT_EVENT is ignored', 'cq.notify-solicited', {
    endpoint(endpoint) {
      around(
        endpoint,
        'send',
        (send) =>
          (result, sgl, flags = 0) =>
            send(result, sgl, flags & ~SEND_AND_SOLICIT_EVENT),
      );
    },
  }),
  mutantV1('any-flags', 'Unknown flags are accepted', 'queue.*-flags', {
    endpoint(endpoint) {
      around(
        endpoint,
        'send',
        (send) =>
          (result, sgl, flags = 0) =>
            send(result, sgl, flags & 0x7),
      );
    },
  }),
  mutantV1(
    'send-before-connection',
    'A Send before the connection is accepted and lost',
    'queue.send-before-*',
    {
      endpoint(endpoint) {
        around(endpoint, 'send', (send) => (...args) => {
          insteadOf(
            Status.CONNECTION_INVALID,
            () => send(...args),
            () => {},
          );
        });
      },
    },
  ),
  mutantV1('swap-receives', 'Receives are consumed in pairs, the later one first', 'queue.receive-order', {
    endpoint(endpoint) {
      let held: (() => void) | undefined;
      around(endpoint, 'receive', (receive) => (...args) => {
        if (held === undefined) {
          held = () => receive(...args);
        } else {
          receive(...args);
          held();
          held = undefined;
        }
      });
    },
  }),
  mutantV1('reverse-pieces', 'Entries are sent in reverse order', 'transfer.gather-scatter', {
    endpoint(endpoint) {
      around(endpoint, 'send', (send) => (result, sgl, flags) => send(result, [...sgl].reverse(), flags));
    },
  }),
  mutantV1('cut-pieces', 'Entries beyond the limit are omitted', 'transfer.send-pieces-limit', {
    endpoint(endpoint) {
      around(endpoint, 'send', (send) => (result, sgl, flags) => {
        insteadOf(
          Status.DATA_OVERRUN,
          () => send(result, sgl, flags),
          () => send(result, sgl.slice(0, 1), flags),
        );
      });
    },
  }),
  mutantV1('no-empty-pieces', 'An entry of 0 bytes is refused', 'transfer.gather-scatter', {
    endpoint(endpoint) {
      around(endpoint, 'send', (send) => (result, sgl, flags) => {
        if (sgl.some(({ length }) => length === 0)) {
          throw Object.assign(new Error('Entries must not be empty'), { status: Status.INVALID_PARAMETER });
        }
        send(result, sgl, flags);
      });
    },
  }),
  mutantV1(
    'any-length',
    'A request beyond the maximum length is accepted and lost',
    'transfer.*-longer-than-anything',
    {
      endpoint(endpoint) {
        around(endpoint, 'write', (write) => (...args) => {
          insteadOf(
            Status.BUFFER_OVERFLOW,
            () => write(...args),
            () => {},
          );
        });
      },
    },
  ),
  mutantV1('inline-later', 'Inline bytes are read after the call', 'transfer.inline', {
    endpoint(endpoint) {
      around(endpoint, 'send', (send) => (result, sgl, flags) => {
        if (sgl.some(({ memory }) => memory instanceof Uint8Array)) {
          queueMicrotask(() => send(result, sgl, flags));
        } else {
          send(result, sgl, flags);
        }
      });
    },
  }),
  mutantV1('inline-lie', 'maxInline is one byte above the inline limit', 'transfer.inline', {
    endpoint(endpoint) {
      Object.defineProperty(endpoint, 'maxInline', { value: endpoint.maxInline + 1 });
    },
  }),
  mutantV1('read-less', 'Read omits its last byte', 'transfer.read-contents', {
    endpoint(endpoint) {
      around(endpoint, 'read', (read) => (result, sgl, remote, offset, flags) => {
        read(result, shorter(sgl), remote, offset, flags);
      });
    },
  }),
  mutantV1('write-at-start', 'Write ignores its offset', 'transfer.write-contents', {
    endpoint(endpoint) {
      around(endpoint, 'write', (write) => (result, sgl, remote, _offset, flags) => {
        write(result, sgl, remote, 0, flags);
      });
    },
  }),
  mutantV1('send-less', 'Send omits its last byte', 'transfer.receive-fits-exactly', {
    endpoint(endpoint) {
      around(endpoint, 'send', (send) => (result, sgl, flags) => send(result, shorter(sgl), flags));
    },
  }),
  mutantV1('batch-lost', 'The last request of a batch is lost', 'queue.batch', {
    endpoint(endpoint) {
      let held: (() => void)[] | undefined;
      endpoint.startRequestBatch = () => {
        held = [];
      };
      endpoint.submitRequestBatch = () => {
        for (const post of held?.slice(0, -1) ?? []) post();
        held = undefined;
      };
      around(endpoint, 'send', (send) => (...args) => {
        if (held === undefined) send(...args);
        else held.push(() => send(...args));
      });
    },
  }),
  mutantV1('window-of-all', 'A window opens all of the memory', 'memory.window-one-byte-*', {
    endpoint(endpoint) {
      around(endpoint, 'bind', (bind) => (result, memory, window, offset, length, flags) => {
        const all = bind(result, memory, window, 0, lengthOf(memory), flags);
        return new NdMwDescriptor(all.base + BigInt(offset), BigInt(length), all.token);
      });
    },
  }),
  mutantV1(
    'window-longer',
    'A window is one byte longer than requested',
    'memory.window-one-byte-too-long-*',
    {
      endpoint(endpoint) {
        around(
          endpoint,
          'bind',
          (bind) => (result, memory, window, offset, length, flags) =>
            bind(result, memory, window, offset, Math.min(length + 1, lengthOf(memory) - offset), flags),
        );
      },
    },
  ),
  mutantV1('window-shorter', 'A window is one byte shorter than requested', 'memory.window-to-its-end-*', {
    endpoint(endpoint) {
      around(
        endpoint,
        'bind',
        (bind) => (result, memory, window, offset, length, flags) =>
          bind(result, memory, window, offset, Math.max(length - 1, 1), flags),
      );
    },
  }),
  mutantV1(
    'window-all-rights',
    'A window lets the peer read and write, whatever was requested',
    'memory.window-read-*',
    {
      endpoint(endpoint) {
        around(
          endpoint,
          'bind',
          (bind) => (result, memory, window, offset, length, flags) =>
            bind(result, memory, window, offset, length, flags | ALLOW_READ | ALLOW_WRITE),
        );
      },
    },
  ),
  mutantV1(
    'window-no-reads',
    'A window that lets the peer read and write lets it only write',
    'memory.window-both-*',
    {
      endpoint(endpoint) {
        around(
          endpoint,
          'bind',
          (bind) => (result, memory, window, offset, length, flags) =>
            bind(
              result,
              memory,
              window,
              offset,
              length,
              (flags & ALLOW_WRITE) !== 0 ? flags & ~ALLOW_READ : flags,
            ),
        );
      },
    },
  ),
  mutantV1(
    'invalidate-nothing',
    'Invalidate succeeds and leaves the window open',
    'memory.window-invalidated-*',
    {
      endpoint(endpoint) {
        endpoint.invalidate = (result, _window, flags) => endpoint.write(result, [], nowhere, 0, flags);
      },
    },
  ),
  mutantV1('bind-over', 'Bind of a bound window succeeds', 'memory.bind-bound', {
    endpoint(endpoint) {
      let last = nowhere;
      around(endpoint, 'bind', (bind) => (...args) => {
        last = insteadOf(
          Status.INVALID_DEVICE_STATE,
          () => bind(...args),
          () => {
            endpoint.write(args[0], [], nowhere, 0);
            return last;
          },
        );
        return last;
      });
    },
  }),
  mutantV1('bind-anything', 'Bind beyond the memory is cut to it', 'memory.bind-ranges', {
    endpoint(endpoint) {
      around(
        endpoint,
        'bind',
        (bind) => (result, memory, window, offset, length, flags) =>
          bind(result, memory, window, offset, Math.min(length, lengthOf(memory) - offset), flags),
      );
    },
  }),
  mutantV1('same-token', 'Every Bind returns the first token', 'memory.bind-new-token', {
    endpoint(endpoint) {
      let token: number | undefined;
      around(endpoint, 'bind', (bind) => (...args) => {
        const bound = bind(...args);
        token ??= bound.token;
        return new NdMwDescriptor(bound.base, bound.length, token);
      });
    },
  }),
  mutantV1(
    'late-token',
    'The descriptor of Bind is valid only after its result was polled',
    'memory.token-before-result',
    {
      endpoint(endpoint) {
        around(endpoint, 'bind', (bind) => (result, memory, window, offset, length, flags) => {
          queueMicrotask(() => bind(result, memory, window, offset, length, flags));
          return nowhere;
        });
      },
    },
  ),
  mutantV1('plain-send', 'SendAndInvalidate is a Send', 'memory.send-and-invalidate', {
    endpoint(endpoint) {
      endpoint.sendAndInvalidate = (result, sgl, _remote, flags) => endpoint.send(result, sgl, flags);
    },
  }),
  mutantV1('unbound-is-fine', 'Invalidate of an unbound window succeeds', 'memory.invalidate-unbound', {
    endpoint(endpoint) {
      const bound = new WeakSet<object>();
      around(endpoint, 'bind', (bind) => (...args) => {
        bound.add(args[2]);
        return bind(...args);
      });
      around(endpoint, 'invalidate', (invalidate) => (result, window, flags) => {
        if (bound.has(window)) invalidate(result, window, flags);
        else endpoint.write(result, [], nowhere, 0, flags);
      });
    },
  }),
  mutantV1('endpoint-stays', 'Releasing an endpoint leaves it connected', 'disconnect.*-released-endpoint', {
    endpoint(endpoint) {
      endpoint.release = () => 0;
    },
  }),
  mutantV1(
    'refuses-beyond',
    'The call refuses a Read into memory beyond a registration',
    'memory.read-local-one-byte-beyond',
    {
      endpoint(endpoint) {
        around(endpoint, 'read', (read) => (result, sgl, ...rest) => {
          checkEnds(sgl);
          read(result, sgl, ...rest);
        });
      },
    },
  ),
];
