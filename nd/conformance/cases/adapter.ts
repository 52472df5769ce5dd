/** Provider and adapter: addresses, limits, instances, references. These cases use near's objects directly. */
import { type INDProvider, type NdResult, Status } from '../../index.js';
import { SUCCESS } from '../case-context.js';
import { Group } from './define.js';

const group = new Group('adapter');
export const adapterCases = group.cases;

function statusThrown(call: () => unknown): number {
  try {
    call();
    return SUCCESS;
  } catch (error) {
    const { status } = error as { status?: unknown };
    if (typeof status !== 'number') throw error;
    return status;
  }
}

const result = (context?: unknown): NdResult => ({ status: Status.PENDING, bytesTransferred: 0, context });

group.add('limits', '§ND_ADAPTER_INFO, §ND2_ADAPTER_INFO', async (t) => {
  const { limits } = t.nearInfo;
  const least: Partial<Record<keyof typeof limits, number>> = {
    receives: 1,
    requests: 1,
    receiveSge: 1,
    requestSge: 1,
    readSge: 1,
    transfer: 65_536,
    cqEntries: 1,
    callerData: 1,
    calleeData: 1,
    inboundReads: 1,
    outboundReads: 1,
    inline: 0,
    sharedReceives: 0,
  };
  for (const [name, minimum] of Object.entries(least) as [keyof typeof limits, number][]) {
    const value = limits[name];
    t.ok(
      Number.isSafeInteger(value) && value >= minimum,
      `Limit ${name}`,
      `at least ${minimum}`,
      String(value),
    );
  }
  t.ok(
    limits.readSge <= limits.requestSge,
    'Entries of a Read',
    'at most those of a Write',
    String(limits.readSge),
  );
});

group.add(
  'addresses',
  '§INDProvider::QueryAddressList, ::OpenAdapter',
  async (t) => {
    const provider = t.provider as INDProvider;
    const list = provider.queryAddressList();
    t.ok(
      list.some(({ address }) => address === t.nearInfo.address),
      'The address list',
      t.nearInfo.address,
      list.map(({ address }) => address).join(', '),
    );
    for (const address of list) {
      t.same(address.port, 0, 'The port of an address in the list');
      const adapter = provider.openAdapter(address);
      t.same(adapter.address.address, address.address, 'The address of its adapter');
      adapter.release();
    }
  },
  ['v1'],
);

group.add(
  'address-not-ours',
  '§INDProvider::OpenAdapter: INVALID_ADDRESS',
  async (t) => {
    const provider = t.provider as INDProvider;
    for (const address of ['192.0.2.77', '0.0.0.0', '2001:db8::77', 'nonsense', '']) {
      t.status(
        statusThrown(() => provider.openAdapter(address)),
        Status.INVALID_ADDRESS,
        `OpenAdapter('${address}')`,
      );
    }
  },
  ['v1'],
);

group.add(
  'query-version',
  '§INDAdapter::Query: NOT_SUPPORTED for another version',
  async (t) => {
    const { adapter } = t.v1;
    t.status(
      statusThrown(() => adapter.query(1)),
      SUCCESS,
      'Query of version 1',
    );
    for (const version of [0, 2, 0x2_0000]) {
      t.status(
        statusThrown(() => adapter.query(version)),
        Status.NOT_SUPPORTED,
        `Query of version ${version}`,
      );
    }
  },
  ['v1'],
);

group.add(
  'control',
  '§INDAdapter::Control: NOT_SUPPORTED, or any status of the vendor',
  async (t) => {
    const { adapter } = t.v1;
    // Any status is allowed, as long as the process does not crash.
    const status = statusThrown(() => adapter.control(0x7fff_fff0, null, 0).getResult({ wait: true }));
    t.ok(status !== Status.PENDING, 'Control', 'a status', 'PENDING');
  },
  ['v1'],
);

group.add(
  'instances',
  '§INDAdapter: objects of different instances must not be mixed',
  async (t) => {
    const provider = t.provider as INDProvider;
    const { adapter } = t.v1;
    const other = provider.openAdapter(t.nearInfo.address);
    try {
      const cq = adapter.createCompletionQueue(8);
      const foreign = other.createCompletionQueue(8);
      const connector = adapter.createConnector();
      const make = (inbound: typeof cq, outbound: typeof cq) => () =>
        connector.createEndpoint({
          inboundCompletionQueue: inbound,
          outboundCompletionQueue: outbound,
          inboundEntries: 2,
          outboundEntries: 2,
        });
      t.status(
        statusThrown(make(foreign, cq)),
        Status.INVALID_PARAMETER_1,
        'An inbound queue of another instance',
      );
      t.status(
        statusThrown(make(cq, foreign)),
        Status.INVALID_PARAMETER_2,
        'An outbound queue of another instance',
      );
      const endpoint = make(cq, cq)();
      const memory = await other.registerMemory(new Uint8Array(64));
      t.status(
        statusThrown(() => endpoint.receive(result(), [{ memory, offset: 0, length: 64 }])),
        Status.INVALID_HANDLE,
        'A Receive into memory of another instance',
      );
      t.status(
        statusThrown(() => adapter.deregisterMemory(memory).getResult({ wait: true })),
        Status.INVALID_HANDLE,
        'DeregisterMemory of memory of another instance',
      );
      const foreignConnector = other.createConnector();
      const stranger = foreignConnector.createEndpoint({
        inboundCompletionQueue: foreign,
        outboundCompletionQueue: foreign,
        inboundEntries: 2,
        outboundEntries: 2,
      });
      t.status(
        statusThrown(() => connector.connect(stranger, `${t.nearInfo.address}:1`).getResult({ wait: true })),
        [Status.INVALID_PARAMETER_1, Status.INVALID_ADDRESS],
        'Connect with an endpoint of another instance',
      );
      for (const object of [endpoint, stranger, connector, foreignConnector, cq, foreign]) object.release();
    } finally {
      other.release();
    }
  },
  ['v1'],
);

group.add(
  'register-arguments',
  '§INDAdapter::RegisterMemory: INVALID_BUFFER_SIZE, INVALID_PARAMETER',
  async (t) => {
    const { adapter } = t.v1;
    const register = (buffer: ArrayBufferLike | ArrayBufferView) => () =>
      adapter.registerMemory(buffer).getResult({ wait: true });
    t.status(
      statusThrown(register(new Uint8Array(0))),
      Status.INVALID_BUFFER_SIZE,
      'RegisterMemory of an empty buffer',
    );
    const detached = new ArrayBuffer(64);
    structuredClone(detached, { transfer: [detached] });
    t.status(
      statusThrown(register(detached)),
      [Status.INVALID_PARAMETER, Status.INVALID_BUFFER_SIZE],
      'A detached buffer',
    );
    for (const buffer of [
      new ArrayBuffer(64),
      new SharedArrayBuffer(64),
      new Uint8Array(100).subarray(3, 67),
      Buffer.alloc(64),
    ]) {
      const memory = await adapter.registerMemory(buffer);
      t.same(memory.length, 64, 'The length of registered memory');
      await adapter.deregisterMemory(memory);
    }
  },
  ['v1'],
);

group.add(
  'references',
  '§IUnknown::AddRef, ::Release',
  async (t) => {
    const { adapter } = t.v1;
    const cq = adapter.createCompletionQueue(8);
    t.same(cq.addRef(), 2, 'AddRef');
    t.same(cq.release(), 1, 'Release');
    t.same(cq.getResults([], 1), 0, 'GetResults with a reference left');
    t.same(cq.release(), 0, 'The last Release');
  },
  ['v1'],
);

group.add(
  'children-keep-parents',
  '§INDProvider, §INDAdapter: children keep their parents alive',
  async (t) => {
    const provider = t.provider as INDProvider;
    const adapter = provider.openAdapter(t.nearInfo.address);
    const cq = adapter.createCompletionQueue(8);
    const connector = adapter.createConnector();
    const endpoint = connector.createEndpoint({
      inboundCompletionQueue: cq,
      outboundCompletionQueue: cq,
      inboundEntries: 2,
      outboundEntries: 2,
    });
    adapter.release();
    connector.release();
    endpoint.receive(result('kept'), []);
    endpoint.flush();
    const results: NdResult[] = [];
    while (cq.getResults(results, 1) === 0) await cq.notify('any');
    t.same(
      [results[0]?.context, results[0]?.status],
      ['kept', Status.CANCELED],
      'A Receive after the adapter was released',
    );
    endpoint.release();
    cq.release();
  },
  ['v1'],
);

group.add(
  'result-identity',
  '§ND_RESULT: GetResults returns the structures of the client',
  async (t) => {
    const { adapter } = t.v1;
    const cq = adapter.createCompletionQueue(8);
    const connector = adapter.createConnector();
    const endpoint = connector.createEndpoint({
      inboundCompletionQueue: cq,
      outboundCompletionQueue: cq,
      inboundEntries: 4,
      outboundEntries: 4,
    });
    const mine = result({ anything: 'at all' });
    const shared = result('for two');
    endpoint.receive(mine, []);
    endpoint.receive(shared, []);
    endpoint.receive(shared, []);
    t.same(mine.status, Status.PENDING, 'A result before its request has completed');
    endpoint.flush();
    const results: NdResult[] = [];
    const taken: NdResult[] = [];
    while (taken.length < 3) {
      const n = cq.getResults(results, 1);
      if (n === 1) taken.push(results[0]!);
      else await cq.notify('any');
    }
    t.ok(
      taken[0] === mine && taken[1] === shared && taken[2] === shared,
      'The results',
      'the objects that were passed',
      'others',
    );
    t.same(mine.context, { anything: 'at all' }, 'The context');
    t.same([mine.status, shared.status], [Status.CANCELED, Status.CANCELED], 'Their statuses');
    for (const object of [endpoint, connector, cq]) object.release();
  },
  ['v1'],
);

group.add(
  'get-result',
  '§INDOverlapped::GetOverlappedResult',
  async (t) => {
    const { adapter } = t.v1;
    const cq = adapter.createCompletionQueue(8);
    const pending = cq.notify('any');
    t.same(pending.completed, false, 'Notify of an empty queue has completed');
    t.status(
      statusThrown(() => pending.getResult()),
      Status.PENDING,
      'GetOverlappedResult without waiting',
    );
    pending.cancel();
    t.status(
      statusThrown(() => pending.getResult({ wait: true })),
      Status.CANCELED,
      'GetOverlappedResult with waiting',
    );
    // The result can be queried any number of times.
    t.status(
      statusThrown(() => pending.getResult()),
      Status.CANCELED,
      'GetOverlappedResult a second time',
    );
    const memory = adapter.registerMemory(new Uint8Array(64)).getResult({ wait: true });
    t.same(memory.length, 64, 'RegisterMemory, awaited without the event loop');
    adapter.deregisterMemory(memory).getResult({ wait: true });
    cq.release();
  },
  ['v1'],
);

group.add(
  'notify-argument',
  '§INDCompletionQueue::Notify: INVALID_PARAMETER for another type',
  async (t) => {
    const cq = t.v1.adapter.createCompletionQueue(8);
    t.status(
      statusThrown(() => cq.notify('everything' as 'any').getResult({ wait: true })),
      Status.INVALID_PARAMETER,
      'Notify with an invalid event type',
    );
    cq.release();
  },
  ['v1'],
);

group.add(
  'cancel-adapter',
  '§INDOverlapped::CancelOverlappedRequests: of an adapter',
  async (t) => {
    const { adapter } = t.v1;
    adapter.cancelOverlappedRequests();
    const request = adapter.registerMemory(new Uint8Array(4096));
    adapter.cancelOverlappedRequests();
    t.same(request.completed, true, 'RegisterMemory has completed when Cancel returns');
    t.status(request.status, [SUCCESS, Status.CANCELED], 'RegisterMemory');
    if (request.status === SUCCESS) await adapter.deregisterMemory(request.getResult());
  },
  ['v1'],
);
