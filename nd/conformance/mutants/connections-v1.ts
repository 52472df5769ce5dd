/** Broken connections, memory and adapters of SPI v1. */
import { NdError, type Overlapped, Status } from '../../index.js';
import { around, insteadOf, type Mutant, mutantV1 } from './mutant.js';

/** Returns the same request with another status if it fails. */
function failingWith(request: Overlapped<void>, from: number, to: number): Overlapped<void> {
  return request.map(
    (value) => value,
    (error) => (error.status === from ? new NdError(to, 'Injected by a mutant.') : error),
  );
}

export const connectionMutants: readonly Mutant[] = [
  mutantV1('no-request-data', 'Private data of Connect is lost', 'connect.private-data', {
    connector(connector) {
      around(connector, 'connect', (connect) => (endpoint, address, options) => {
        const { privateData: _, ...rest } = options ?? {};
        return connect(endpoint, address, rest);
      });
    },
  }),
  mutantV1('cut-reply-data', 'The last byte of Accept’s private data is lost', 'connect.private-data*', {
    connector(connector) {
      around(connector, 'accept', (accept) => (endpoint, data) => accept(endpoint, data?.subarray(0, -1)));
    },
  }),
  mutantV1('any-request-data', 'Private data beyond the limit is cut to it', 'connect.private-data-limits', {
    connector(connector, adapter) {
      const { maxCallerData } = adapter.query();
      around(
        connector,
        'connect',
        (connect) => (endpoint, address, options) =>
          connect(endpoint, address, {
            ...options,
            ...(options?.privateData === undefined
              ? {}
              : { privateData: options.privateData.subarray(0, maxCallerData) }),
          }),
      );
    },
  }),
  mutantV1('no-reject-data', 'Private data of Reject is lost', 'connect.rejected', {
    connector(connector) {
      around(connector, 'reject', (reject) => () => reject());
    },
  }),
  mutantV1('swapped-limits', 'Read limits are reported from the peer’s view', 'connect.read-limits', {
    connector(connector) {
      around(connector, 'getConnectionData', (get) => () => {
        const { inboundReadLimit, outboundReadLimit, privateData } = get();
        return { inboundReadLimit: outboundReadLimit, outboundReadLimit: inboundReadLimit, privateData };
      });
    },
  }),
  mutantV1('refused-as-timeout', 'A refused Connect ends in TIMEOUT', 'connect.refused-without-listener', {
    connector(connector) {
      around(
        connector,
        'connect',
        (connect) =>
          (...args) =>
            failingWith(connect(...args), Status.CONNECTION_REFUSED, Status.TIMEOUT),
      );
    },
  }),
  mutantV1(
    'connect-once',
    'A connector cannot be used after a failed Connect',
    'connect.refused-without-listener',
    {
      connector(connector) {
        let tried = false;
        around(connector, 'connect', (connect) => (...args) => {
          if (tried) throw new NdError(Status.INVALID_DEVICE_STATE, 'Injected by a mutant.');
          tried = true;
          return connect(...args);
        });
      },
    },
  ),
  mutantV1('failed-connect-flushes', 'A failed Connect flushes the posted Receives', 'connect.rejected', {
    connector(connector) {
      around(
        connector,
        'connect',
        (connect) =>
          (endpoint, ...rest) =>
            connect(endpoint, ...rest).map(
              (value) => value,
              (error) => {
                endpoint.flush();
                return error;
              },
            ),
      );
    },
  }),
  mutantV1('no-own-port', 'A connector does not report its port', 'connect.*-connects', {
    connector(connector) {
      around(connector, 'getLocalAddress', (get) => () => ({ ...get(), port: 0 }));
    },
  }),
  mutantV1('state-error', 'Wrong states are INVALID_DEVICE_STATE, whatever the method', 'state.connecting', {
    connector(connector) {
      around(connector, 'disconnect', (disconnect) => () => {
        try {
          return disconnect();
        } catch {
          throw new NdError(Status.INVALID_DEVICE_STATE, 'Injected by a mutant.');
        }
      });
    },
  }),
  mutantV1('accept-any-endpoint', 'Connect accepts an endpoint in use', 'connect.endpoint-in-use', {
    connector(connector, adapter) {
      around(
        connector,
        'connect',
        (connect) =>
          (...args) =>
            insteadOf(
              Status.CONNECTION_ACTIVE,
              () => connect(...args),
              () => adapter.registerMemory(new Uint8Array(1)).map(() => undefined),
            ),
      );
    },
  }),
  mutantV1(
    'peer-end-is-cancel',
    'NotifyDisconnect is cancelled when the peer disconnects',
    'disconnect.*-both-sides',
    {
      connector(connector) {
        around(
          connector,
          'notifyDisconnect',
          (notify) => () =>
            notify().map(() => {
              throw new NdError(Status.CANCELED, 'Injected by a mutant.');
            }),
        );
      },
    },
  ),
  mutantV1(
    'only-peer-end',
    'A Disconnect by this side leaves NotifyDisconnect waiting',
    'disconnect.*-both-sides',
    {
      connector(connector, adapter) {
        let own = false;
        around(connector, 'disconnect', (disconnect) => () => {
          own = true;
          return disconnect();
        });
        around(connector, 'notifyDisconnect', (notify) => () => {
          const request = notify();
          const pending = adapter.createCompletionQueue(1).notify('errors');
          const finish = (): void => {
            if (!own) pending.cancel();
          };
          request.then(finish, finish);
          return pending.map(
            (value) => value,
            (error) => error,
          );
        });
      },
    },
  ),
  mutantV1('disconnect-again', 'Disconnect of a disconnected connector succeeds', 'disconnect.*-both-sides', {
    connector(connector, adapter) {
      around(
        connector,
        'disconnect',
        (disconnect) => () =>
          insteadOf(Status.CONNECTION_INVALID, disconnect, () =>
            adapter.registerMemory(new Uint8Array(1)).map(() => undefined),
          ),
      );
    },
  }),
  mutantV1(
    'connector-stays',
    'Releasing a connector leaves it connected',
    'disconnect.*-released-connector',
    {
      connector(connector) {
        connector.release = () => 0;
      },
    },
  ),
  mutantV1(
    'cancel-nothing',
    'CancelOverlappedRequests of a connector does nothing',
    'disconnect.*-cancel-notify',
    {
      connector(connector) {
        connector.cancelOverlappedRequests = () => {};
      },
    },
  ),
  mutantV1(
    'cancel-disconnects',
    'Cancelling NotifyDisconnect ends the connection',
    'disconnect.*-cancel-notify',
    {
      connector(connector) {
        around(connector, 'cancelOverlappedRequests', (cancel) => () => {
          cancel();
          connector.disconnect().catch(() => {});
        });
      },
    },
  ),
  mutantV1('no-backlog', 'The backlog is not limited', 'connect.backlog', {
    adapter(adapter) {
      around(adapter, 'listen', (listen) => (options) => listen({ ...options, backlog: 0 }));
    },
  }),
  mutantV1('another-port', 'Listen on a port in use selects another', 'connect.port-in-use', {
    adapter(adapter) {
      around(
        adapter,
        'listen',
        (listen) => (options) =>
          insteadOf(
            Status.ADDRESS_ALREADY_EXISTS,
            () => listen(options),
            () => listen({ ...options, port: 0 }),
          ),
      );
    },
  }),
  mutantV1('listens-for-ever', 'A released listener continues to listen', 'connect.listener-released', {
    listen(listen) {
      listen.release = () => 0;
    },
  }),
  mutantV1('busy-connector', 'GetConnectionRequest accepts a connector that is not idle', 'state.connected', {
    listen(listen, adapter) {
      around(
        listen,
        'getConnectionRequest',
        (get) => (connector) =>
          insteadOf(
            Status.CONNECTION_ACTIVE,
            () => get(connector),
            () => adapter.registerMemory(new Uint8Array(1)).map(() => undefined),
          ),
      );
    },
  }),
  mutantV1('udp-listens', 'Listen accepts UDP', 'connect.listen-arguments', {
    adapter(adapter) {
      around(
        adapter,
        'listen',
        (listen) => (options) => listen({ ...options, ...(options?.protocol === 17 ? { protocol: 6 } : {}) }),
      );
    },
  }),
  mutantV1('registers-a-copy', 'The registered memory is a copy', 'transfer.send-lengths', {
    adapter(adapter) {
      around(
        adapter,
        'registerMemory',
        (register) => (buffer) =>
          register(ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.byteLength) : buffer),
      );
    },
  }),
  mutantV1('deregister-nothing', 'Deregister succeeds and does nothing', 'memory.deregister-*', {
    adapter(adapter) {
      adapter.deregisterMemory = () => adapter.registerMemory(new Uint8Array(1)).map(() => undefined);
    },
  }),
  mutantV1('limits-lie', 'Query reports more entries than an endpoint can have', '*-limit*', {
    adapter(adapter) {
      around(adapter, 'query', (query) => (version) => {
        const info = query(version);
        return {
          ...info,
          maxInboundSge: info.maxInboundSge + 1,
          maxOutboundSge: info.maxOutboundSge + 1,
          maxCqEntries: info.maxCqEntries * 2,
        };
      });
    },
  }),
  mutantV1('any-version', 'Query accepts any version', 'adapter.query-version', {
    adapter(adapter) {
      around(adapter, 'query', (query) => () => query(1));
    },
  }),
  mutantV1('any-address', 'OpenAdapter opens an adapter for any address', 'adapter.address-not-ours', {
    provider(provider) {
      around(
        provider,
        'openAdapter',
        (open) => (address) =>
          insteadOf(
            Status.INVALID_ADDRESS,
            () => open(address),
            () => open(provider.queryAddressList()[0]!),
          ),
      );
    },
  }),
  mutantV1('no-references', 'AddRef counts nothing', 'adapter.references', {
    completionQueue(queue) {
      queue.addRef = () => 2;
    },
  }),
  mutantV1(
    'parents-end',
    'Releasing an adapter cancels the requests of its children',
    'adapter.children-keep-parents',
    {
      adapter(adapter) {
        const children: { release(): number }[] = [];
        around(adapter, 'createCompletionQueue', (create) => (entries) => {
          const queue = create(entries);
          children.push(queue);
          return queue;
        });
        around(adapter, 'release', (release) => () => {
          for (const child of children) child.release();
          return release();
        });
      },
    },
  ),
];
