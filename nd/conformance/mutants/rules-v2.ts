/** Broken providers of SPI v2: rules that v1 does not have. */
import { Nd2MrFlag, Nd2OpFlag, NdError, Status } from '../../index.js';
import { around, insteadOf, type Mutant, mutantV2 } from './mutant.js';

export const v2Mutants: readonly Mutant[] = [
  mutantV2('no-request-type', 'Every result is reported as that of a Receive', 'v2.result-fields', {
    completionQueue(queue) {
      around(queue, 'getResults', (getResults) => (into, max) => {
        const n = getResults(into, max);
        for (let i = 0; i < n; i += 1) into[i]!.requestType = 0;
        return n;
      });
    },
  }),
  mutantV2('no-queue-pair-context', 'Cancelled requests do not report their queue pair', 'v2.result-fields', {
    completionQueue(queue) {
      around(queue, 'getResults', (getResults) => (into, max) => {
        const n = getResults(into, max);
        for (let i = 0; i < n; i += 1) {
          if (into[i]!.status !== Status.SUCCESS) into[i]!.queuePairContext = undefined;
        }
        return n;
      });
    },
  }),
  mutantV2('token-of-nothing', 'The token of a region refers to no memory', 'v2.local-token', {
    region(region) {
      around(region, 'getLocalToken', (token) => () => token() + 1);
    },
  }),
  mutantV2('keeps-nothing', 'keepQueuePairsOnDisconnect changes nothing', 'disconnect.*-peer-keeps', {
    provider(provider) {
      around(provider, 'openAdapter', (open) => (id) => open(id));
    },
  }),
  mutantV2('region-all-rights', 'A region is open to peers, whatever its flags', 'v2.region-local-*', {
    region(region) {
      around(
        region,
        'register',
        (register) => (buffer, flags) =>
          register(buffer, flags | Nd2MrFlag.ALLOW_REMOTE_READ | Nd2MrFlag.ALLOW_REMOTE_WRITE),
      );
    },
  }),
  mutantV2('remote-write-is-five', 'ALLOW_LOCAL_WRITE alone lets peers write', 'v2.region-local-write', {
    region(region) {
      around(
        region,
        'register',
        (register) => (buffer, flags) =>
          register(buffer, (flags & Nd2MrFlag.ALLOW_REMOTE_WRITE) !== 0 ? flags | 0x4 : flags),
      );
    },
  }),
  mutantV2('always-local-write', 'Every region can be written by local requests', 'v2.no-local-write', {
    region(region) {
      around(
        region,
        'register',
        (register) => (buffer, flags) => register(buffer, flags | Nd2MrFlag.ALLOW_LOCAL_WRITE),
      );
    },
  }),
  mutantV2(
    'region-longer',
    'A region is as long as the buffer behind its view',
    'memory.*-local-one-byte-beyond',
    {
      region(region) {
        around(region, 'register', (register) => (buffer, flags) => {
          const longer = new Uint8Array(buffer.byteLength + 4096);
          return register(longer, flags);
        });
      },
    },
  ),
  mutantV2('register-over', 'Register of a registered region succeeds', 'v2.region-states', {
    region(region) {
      around(
        region,
        'register',
        (register) => (buffer, flags) =>
          insteadOf(
            Status.INVALID_DEVICE_STATE,
            () => register(buffer, flags),
            () => {
              region.deregister().getResult({ wait: true });
              return register(buffer, flags);
            },
          ),
      );
    },
  }),
  mutantV2('every-interface', 'QueryInterface accepts any interface', 'v2.query-interface', {
    completionQueue(queue) {
      around(queue, 'queryInterface', () => () => {
        queue.addRef();
        return queue as never;
      });
    },
  }),
  mutantV2('no-processor', 'No CPU delivers notifications', 'v2.notify-affinity', {
    completionQueue(queue) {
      around(queue, 'getNotifyAffinity', () => () => ({ group: 0, mask: 0n }));
    },
  }),
  mutantV2('never-inline', 'INLINE is ignored', 'v2.inline-size', {
    queuePair(queuePair) {
      around(
        queuePair,
        'send',
        (send) =>
          (context, sgl, flags = 0) =>
            send(context, sgl, flags & ~Nd2OpFlag.INLINE),
      );
    },
  }),
  mutantV2('bind-again', 'A second Bind of a connector succeeds', 'v2.connector-binding', {
    connector(connector) {
      around(
        connector,
        'bind',
        (bind) => (address) =>
          insteadOf(
            Status.ADDRESS_ALREADY_ASSOCIATED,
            () => bind(address),
            () => {},
          ),
      );
    },
  }),
  mutantV2('address-after-listen', 'A listener has no address before it listens', 'v2.listener-states', {
    listener(listener) {
      let listening = false;
      around(listener, 'listen', (listen) => (backlog) => {
        listen(backlog);
        listening = true;
      });
      around(listener, 'getLocalAddress', (get) => () => {
        const address = get();
        return listening ? address : { ...address, port: 0 };
      });
    },
  }),
  mutantV2('any-adapter', 'Query also accepts version 1', 'v2.query-version', {
    adapter(adapter) {
      around(adapter, 'query', (query) => () => query());
    },
  }),
  mutantV2(
    'shared-never-empty',
    'A shared receive queue is reported below its threshold at once',
    'srq.notify-off',
    {
      adapter(adapter) {
        around(adapter, 'createSharedReceiveQueue', (create) => (options) => {
          const queue = create(options);
          around(queue, 'notify', () => () => {
            const region = adapter.createMemoryRegion();
            const done = region.register(new Uint8Array(1), 0);
            done.getResult({ wait: true });
            return done;
          });
          return queue;
        });
      },
    },
  ),
  mutantV2(
    'shared-shrinks',
    'Modify of a shared receive queue below the outstanding Receives succeeds',
    'srq.modify',
    {
      adapter(adapter) {
        around(adapter, 'createSharedReceiveQueue', (create) => (options) => {
          const queue = create(options);
          around(queue, 'modify', (modify) => (depth, threshold) => {
            insteadOf(
              Status.BUFFER_OVERFLOW,
              () => modify(depth, threshold),
              () => {},
            );
          });
          return queue;
        });
      },
    },
  ),
  mutantV2('flush-shared', 'Flush also cancels the Receives of the shared queue', 'srq.flush-leaves-shared', {
    adapter(adapter) {
      around(adapter, 'createQueuePairWithSrq', (create) => ({ sharedReceiveQueue, ...options }) => {
        const queuePair = create({ sharedReceiveQueue, ...options });
        const own = adapter.createQueuePair({ ...options, receiveQueueDepth: 16, maxReceiveRequestSge: 4 });
        around(queuePair, 'flush', (flush) => () => {
          flush();
          own.receive(0, []);
          own.flush();
        });
        return queuePair;
      });
    },
  }),
  mutantV2(
    'refuses-beyond-v2',
    'The call refuses a Write from memory beyond a registration',
    'memory.write-local-one-byte-beyond',
    {
      adapter(adapter) {
        const lengths = new Map<unknown, number>();
        around(adapter, 'createMemoryRegion', (create) => () => {
          const region = create();
          around(region, 'register', (register) => (buffer, flags) => {
            lengths.set(region, buffer.byteLength);
            return register(buffer, flags);
          });
          return region;
        });
        around(adapter, 'createQueuePair', (create) => (options) => {
          const queuePair = create(options);
          around(queuePair, 'write', (write) => (context, sgl, ...rest) => {
            if (sgl.some(({ memory, offset, length }) => offset + length > (lengths.get(memory) ?? Infinity)))
              throw new NdError(Status.ACCESS_VIOLATION, 'The entry ends beyond its region.');
            write(context, sgl, ...rest);
          });
          return queuePair;
        });
      },
    },
  ),
];
