/** Features that only SPI v2 has: adapter ids, memory regions with rights, request types, binding, explicit inline. */
import { type IND2Provider, Nd2MrFlag, Nd2OpFlag, Nd2RequestType, Status } from '../../index.js';
import {
  ALLOW_READ,
  ALLOW_WRITE,
  CANCELED,
  End,
  receives,
  SUCCESS,
  sends,
  statusOf,
  steadyBytes,
  Violation,
} from '../case-context.js';
import type { Post } from '../half.js';
import { Group } from './define.js';

const group = new Group('v2');
export const v2Cases = group.cases;

const only = ['v2'] as const;
const { ALLOW_LOCAL_WRITE, ALLOW_REMOTE_READ, ALLOW_REMOTE_WRITE } = Nd2MrFlag;
const { INLINE } = Nd2OpFlag;

const thrown = (call: () => unknown): Promise<number> => statusOf((async () => call())());

group.add(
  'addresses',
  '§IND2Provider::QueryAddressList, ::ResolveAddress, ::OpenAdapter',
  async (t) => {
    const provider = t.provider as IND2Provider;
    const list = provider.queryAddressList();
    t.ok(
      list.some(({ address }) => address === t.nearInfo.address),
      'The address list',
      t.nearInfo.address,
      list.map(({ address }) => address).join(', '),
    );
    for (const address of list) {
      t.same(address.port, 0, 'The port of an address in the list');
      const id = provider.resolveAddress(address);
      const adapter = provider.openAdapter(id);
      t.same(String(adapter.query().adapterId), String(id), 'The id of its adapter');
      t.ok(
        adapter.queryAddressList().some((own) => own.address === address.address),
        "The adapter's own address list",
        address.address,
        'missing',
      );
      adapter.release();
    }
    for (const address of ['192.0.2.77', '0.0.0.0', 'nonsense', '']) {
      t.status(
        await thrown(() => provider.resolveAddress(address)),
        Status.INVALID_ADDRESS,
        `ResolveAddress('${address}')`,
      );
    }
    t.status(
      await thrown(() => provider.openAdapter(0xdead_beef_0bad_f00dn)),
      Status.INVALID_PARAMETER,
      'OpenAdapter with an unknown id',
    );
  },
  only,
);

group.add(
  'local-token',
  '§IND2MemoryRegion::GetLocalToken: accepted in scatter/gather entries',
  async (t) => {
    const { near, far } = await t.pair({
      far: { rights: ALLOW_LOCAL_WRITE | ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE },
    });
    const target = await far.party.target(far.memory);
    await near.party.fill(near.memory, 0, 64, 1);
    await far.post({ op: 'receive', context: 0, pieces: [{ at: 100, length: 64, token: true }] });
    await near.post(
      {
        op: 'send',
        context: 0,
        pieces: [
          { at: 0, length: 10, token: true },
          { at: 10, length: 54 },
        ],
      },
      { op: 'write', context: 1, pieces: [{ at: 0, length: 64, token: true }], target, offset: 200 },
      { op: 'read', context: 2, pieces: [{ at: 1000, length: 64, token: true }], target, offset: 200 },
    );
    t.run(await near.done(3), 3, SUCCESS, 'Requests with tokens');
    t.run(await far.received(1), 1, SUCCESS, 'A Receive with a token');
    for (const [end, at] of [
      [far, 100],
      [far, 200],
      [near, 1000],
    ] as const) {
      await t.holds(end, at, 64, 1, `Memory at ${at}`);
    }
  },
  only,
);

group.add(
  'query-version',
  '§IND2Adapter::Query: NOT_SUPPORTED for another version',
  async (t) => {
    const { adapter } = t.v2;
    const info = adapter.query(0x2_0000);
    t.same(info.infoVersion, 0x2_0000, 'InfoVersion');
    t.ok(
      info.inlineRequestThreshold <= info.maxInlineDataSize,
      'InlineRequestThreshold',
      `at most ${info.maxInlineDataSize}`,
      String(info.inlineRequestThreshold),
    );
    for (const version of [0, 1, 2]) {
      t.status(
        await thrown(() => adapter.query(version)),
        Status.NOT_SUPPORTED,
        `Query of version ${version}`,
      );
    }
  },
  only,
);

group.add(
  'queue-pair-arguments',
  '§IND2Adapter::CreateQueuePair: INVALID_PARAMETER_5 to _9, limits work',
  async (t) => {
    const { limits } = t.nearInfo;
    for (const [name, limit, status] of [
      ['receives', limits.receives, Status.INVALID_PARAMETER_5],
      ['requests', limits.requests, Status.INVALID_PARAMETER_6],
      ['receiveSge', limits.receiveSge, Status.INVALID_PARAMETER_7],
      ['requestSge', limits.requestSge, Status.INVALID_PARAMETER_8],
      ['inline', limits.inline, Status.INVALID_PARAMETER_9],
    ] as const) {
      for (const value of [-1, limit + 1, 1.5]) {
        await t.refused(
          t.near.link({ [name]: value, memory: 0 }),
          status,
          `CreateQueuePair with ${name} ${value}`,
        );
      }
      t.step(`creating a queue pair with ${name} ${limit}`);
      await t.near.release(await t.near.link({ [name]: limit, memory: 0 }));
    }
  },
  only,
);

group.add(
  'instances',
  '§IND2Adapter: objects of different instances must not be mixed',
  async (t) => {
    const provider = t.provider as IND2Provider;
    const { adapter } = t.v2;
    const other = provider.openAdapter(adapter.query().adapterId);
    try {
      const cq = adapter.createCompletionQueue(8);
      const foreign = other.createCompletionQueue(8);
      const make = (receive: typeof cq, initiator: typeof cq) =>
        adapter.createQueuePair({
          receiveCompletionQueue: receive,
          initiatorCompletionQueue: initiator,
          receiveQueueDepth: 2,
          initiatorQueueDepth: 2,
        });
      t.status(
        await thrown(() => make(foreign, cq)),
        Status.INVALID_PARAMETER_2,
        'A receive queue of another instance',
      );
      t.status(
        await thrown(() => make(cq, foreign)),
        Status.INVALID_PARAMETER_3,
        'An initiator queue of another instance',
      );
      const queuePair = make(cq, cq);
      const region = other.createMemoryRegion();
      await region.register(steadyBytes(64), ALLOW_LOCAL_WRITE);
      t.status(
        await thrown(() => queuePair.receive(1, [{ memory: region, offset: 0, length: 64 }])),
        [Status.INVALID_HANDLE, Status.ACCESS_VIOLATION],
        'A Receive into memory of another instance',
      );
      for (const object of [queuePair, region, cq, foreign]) object.release();
    } finally {
      other.release();
    }
  },
  only,
);

group.add(
  'notify-affinity',
  '§IND2CompletionQueue::GetNotifyAffinity: optional',
  async (t) => {
    const cq = t.v2.adapter.createCompletionQueue(8, { group: 0, mask: 1n });
    const affinities: { mask: bigint }[] = [];
    t.status(
      await thrown(() => affinities.push(cq.getNotifyAffinity())),
      [SUCCESS, Status.NOT_SUPPORTED],
      'GetNotifyAffinity',
    );
    for (const { mask } of affinities)
      t.ok(mask !== 0n, 'The CPUs that deliver notifications', 'at least one', 'none');
    cq.release();
  },
  only,
);

group.add(
  'query-interface',
  '§IND2CompletionQueue, §IND2QueuePair: QueryInterface of IUnknown',
  async (t) => {
    const { adapter } = t.v2;
    const cq = adapter.createCompletionQueue(8);
    const region = adapter.createMemoryRegion();
    for (const [object, own, foreign] of [
      [adapter, 'IND2Adapter', 'IND2Connector'],
      [cq, 'IND2CompletionQueue', 'IND2QueuePair'],
      [cq, 'IND2Overlapped', 'IND2MemoryRegion'],
      [region, 'IND2MemoryRegion', 'IND2CompletionQueue'],
    ] as const) {
      const before = object.addRef();
      const returned: unknown = object.queryInterface(own);
      t.ok(returned === object, own, 'the object', String(returned));
      t.same([object.release()], [before], `References after QueryInterface of ${own}, one of them released`);
      t.status(
        await thrown(() => object.queryInterface(foreign)),
        Status.NOT_SUPPORTED,
        `QueryInterface of ${foreign}`,
      );
      object.release();
    }
    region.release();
    cq.release();
  },
  only,
);

group.add(
  'result-fields',
  '§ND2_RESULT: RequestType, QueuePairContext, BytesTransferred',
  async (t) => {
    const { near, far } = await t.pair();
    const window = await t.near.window();
    const { target } = await far.open(ALLOW_READ | ALLOW_WRITE);
    const pieces = [{ at: 0, length: 40 }];
    await far.post(...receives(1));
    await near.post(
      { op: 'send', context: 0, pieces },
      { op: 'bind', context: 1, window, length: 64, flags: ALLOW_READ },
      { op: 'invalidate', context: 2, window },
      { op: 'read', context: 3, pieces, target },
      { op: 'write', context: 4, pieces, target },
    );
    const { SEND, BIND, INVALIDATE, READ, WRITE, RECEIVE } = Nd2RequestType;
    const done = await near.done(5);
    t.run(done, 5, SUCCESS, 'Requests of each type');
    t.same(
      done.map(({ type }) => type),
      [SEND, BIND, INVALIDATE, READ, WRITE],
      'Their types',
    );
    t.same(
      done.map(({ link }) => link),
      Array(5).fill(near.link),
      'Their queue pair contexts',
    );
    const [received] = await far.received(1);
    t.same([received?.type, received?.bytes, received?.link], [RECEIVE, 40, far.link], 'The Receive');
    // Cancelled requests report the same values.
    await t.near.inOneTurn([
      ['post', near.link, [...receives(1, 64, 9), ...sends(2, 64, 10)]],
      ['flush', near.link],
    ]);
    const [receive, [first, second]] = [await near.received(1), await near.done(2)];
    t.same(
      [...receive, second].map((one) => [one?.context, one?.status, one?.type, one?.link]),
      [
        [9, CANCELED, RECEIVE, near.link],
        [11, CANCELED, SEND, near.link],
      ],
      'Cancelled requests',
    );
    t.same([first?.context, first?.type, first?.link], [10, SEND, near.link], 'The Send before');
    t.status(first?.status ?? -1, [CANCELED, ...t.statuses.timeout], 'The Send before');
  },
  only,
);

group.add(
  'inline-size',
  '§ND_OP_FLAG_INLINE: up to the requested size, any number of entries',
  async (t) => {
    const inline = Math.min(64, t.nearInfo.limits.inline);
    const { near, far } = await t.pair({ near: { inline, requestSge: 1 } });
    await far.post(...receives(2));
    const plain = Array.from({ length: 256 }, (_, i) => i & 0xff);
    const parts = Array.from({ length: 4 }, (_, i) => ({ at: i * 4, length: Math.floor(inline / 4), plain }));
    await near.post({ op: 'send', context: 1, pieces: parts, flags: INLINE });
    t.run(await near.done(1), 1, SUCCESS, 'INLINE of four entries with a limit of one', 1);
    t.status(
      await near.postStatus({ op: 'send', pieces: [{ at: 0, length: inline + 1, plain }], flags: INLINE }),
      [Status.BUFFER_OVERFLOW, Status.DATA_OVERRUN],
      'One byte more than the inline size',
    );
    t.status(
      await near.postStatus({ op: 'send', pieces: [{ at: 0, length: 8, plain }] }),
      Status.INVALID_HANDLE,
      'Unregistered memory without INLINE',
    );
    const none = await t.pair({ near: { inline: 0 } });
    await none.far.post(...receives(1));
    await none.near.post({ op: 'send', context: 0, pieces: [], flags: INLINE });
    t.run(await none.near.done(1), 1, SUCCESS, 'INLINE of 0 bytes with an inline size of 0');
  },
  only,
);

group.add(
  'listener-states',
  '§IND2Listener::Bind, ::Listen, ::GetLocalAddress, ::GetConnectionRequest',
  async (t) => {
    const { adapter } = t.v2;
    const listener = adapter.createListener();
    const connector = adapter.createConnector();
    const status = (call: () => unknown) => thrown(call);
    t.status(await status(() => listener.listen(0)), Status.INVALID_DEVICE_STATE, 'Listen before Bind');
    t.status(
      await status(() => listener.getLocalAddress()),
      [Status.INVALID_DEVICE_STATE, Status.ADDRESS_NOT_ASSOCIATED],
      'GetLocalAddress before Bind',
    );
    t.status(
      await status(() => listener.bind('192.0.2.77')),
      Status.INVALID_ADDRESS,
      "Bind to an address that is not the adapter's",
    );
    listener.bind(t.nearInfo.address);
    const { port } = listener.getLocalAddress();
    t.ok(port > 0, 'The port between Bind and Listen', 'a port', String(port));
    t.status(
      await status(() => listener.bind(t.nearInfo.address)),
      Status.ADDRESS_ALREADY_ASSOCIATED,
      'A second Bind',
    );
    t.status(
      await status(() => listener.getConnectionRequest(connector)),
      Status.INVALID_DEVICE_STATE,
      'GetConnectionRequest before Listen',
    );
    listener.listen(0);
    t.status(await status(() => listener.listen(0)), Status.INVALID_DEVICE_STATE, 'A second Listen');
    t.same(listener.getLocalAddress().port, port, 'The port after Listen');
    listener.release();
    connector.release();
  },
  only,
);

group.add(
  'connector-binding',
  '§IND2Connector::Bind, ::Connect, ::GetLocalAddress',
  async (t) => {
    const { adapter } = t.v2;
    const connector = adapter.createConnector();
    const cq = adapter.createCompletionQueue(8);
    const queuePair = adapter.createQueuePair({
      receiveCompletionQueue: cq,
      initiatorCompletionQueue: cq,
      receiveQueueDepth: 2,
      initiatorQueueDepth: 2,
    });
    t.status(
      await thrown(() => connector.connect(queuePair, `${t.nearInfo.address}:5`)),
      Status.ADDRESS_NOT_ASSOCIATED,
      'Connect before Bind',
    );
    for (const address of ['192.0.2.77', '0.0.0.0']) {
      t.status(await thrown(() => connector.bind(address)), Status.INVALID_ADDRESS, `Bind to ${address}`);
    }
    connector.bind(t.nearInfo.address);
    t.ok(connector.getLocalAddress().port > 0, 'The port after Bind', 'a port', '0');
    t.status(
      await thrown(() => connector.bind(t.nearInfo.address)),
      Status.ADDRESS_ALREADY_ASSOCIATED,
      'A second Bind',
    );
    const listener = adapter.createListener();
    listener.bind(t.nearInfo.address);
    listener.listen();
    t.status(
      await thrown(() => listener.getConnectionRequest(connector)),
      Status.CONNECTION_ACTIVE,
      'GetConnectionRequest with a bound connector',
    );
    for (const object of [connector, queuePair, cq, listener]) object.release();
  },
  only,
);

group.add(
  'listener-on-all-addresses',
  '§IND2Listener::Bind: the wildcard address',
  async (t) => {
    if (t.nearInfo.family === 6) t.skip('The wildcard address of this case is an IPv4 address.');
    const listener = await t.near.listen({ address: '0.0.0.0' });
    const { port } = await t.near.listenerAddress(listener);
    const address = { address: t.nearInfo.address, port };
    const [near, far] = [await End.make(t.near), await End.make(t.far)];
    await t.join(far, near, listener, address);
    t.same(await t.near.localAddress(near.link), address, 'The address of the accepted connection');
    await near.post(...receives(1));
    await far.post(...sends(1));
    t.run(await near.received(1), 1, SUCCESS, 'Receive of a connection to a listener on all addresses');
  },
  only,
);

group.add(
  'read-flags',
  '§IND2QueuePair::Read, ::Bind, ::Invalidate: unknown flags',
  async (t) => {
    const { near, far } = await t.pair();
    const { target } = await far.open(ALLOW_READ);
    const window = await t.near.window();
    const posts: [Post, number][] = [
      [{ op: 'read', pieces: [{ at: 0, length: 8 }], target, flags: 0x100 }, Status.INVALID_PARAMETER_6],
      [{ op: 'bind', window, length: 8, flags: 0x108 }, Status.INVALID_PARAMETER_6],
      [{ op: 'invalidate', window, flags: 0x100 }, Status.INVALID_PARAMETER_3],
    ];
    for (const [post, refused] of posts) {
      const status = await near.postStatus(post);
      // Only Send and Write must refuse unknown flags; other requests may accept them, but must then be executed
      // correctly.
      if (status !== refused && status !== SUCCESS) {
        throw new Violation(
          `${post.op} with unknown flags`,
          'INVALID_PARAMETER_n or SUCCESS',
          String(status),
        );
      }
    }
  },
  only,
);
