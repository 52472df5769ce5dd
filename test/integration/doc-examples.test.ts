// The examples in docstrings compile without errors, and the most important objects have an example.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { long } from '../helpers/tiers.js';

/** The most important objects of each layer. */
const objects = [
  ...[
    'Provider',
    'Adapter',
    'CompletionQueue',
    'MemoryRegion',
    'MemoryWindow',
    'SharedReceiveQueue',
    'QueuePair',
  ].map((name) => `IND2${name}`),
  ...['IND2Connector', 'IND2Listener', 'Nd2RemoteMemory'],
  ...['Provider', 'Adapter', 'CompletionQueue', 'MemoryWindow', 'Endpoint', 'Listen', 'Connector'].map(
    (name) => `IND${name}`,
  ),
  ...[
    'Provider',
    'Device',
    'CompletionQueue',
    'ProtectionDomain',
    'SharedReceiveQueue',
    'AddressHandle',
    'MemoryWindow',
  ].map((name) => `IWV${name}`),
  ...[
    'IWVFastRegion',
    'IWVConnectQueuePair',
    'IWVDatagramQueuePair',
    'IWVConnectEndpoint',
    'IWVDatagramEndpoint',
  ],
  ...['Server', 'Socket', 'Channel', 'RemoteMemory', 'ExposedMemory', 'LentMemory'],
];

long(test, 'each object has an example', async () => {
  const { readExamples } = await import('../helpers/doc-examples.js');
  const examples = readExamples();
  const with_ = new Set(examples.map(({ name }) => name));
  assert.equal(
    objects.filter((name) => !with_.has(name)),
    [],
  );
});

long(test, 'all examples compile without errors', async () => {
  const { programOf, readExamples } = await import('../helpers/doc-examples.js');
  const { checkPrograms } = await import('../helpers/checked-programs.js');
  const examples = readExamples();
  assert.ok(examples.length > 50);
  const wrong = { at: 'here:1', name: '', module: 'networkdirect', version1: false };
  const programs = [...examples, { ...wrong, source: 'queuePair.sendAll(1);' }].map(programOf);
  const errors = checkPrograms(programs).map((error) => {
    const index = Number(/^example-(\d+)/.exec(error)?.[1]);
    return `${programs[index]?.page}: ${error}`;
  });
  const [expected, ...others] = errors.sort(
    (a, b) => Number(b.startsWith('here')) - Number(a.startsWith('here')),
  );
  assert.match(expected ?? '', 'here:1: example-');
  assert.match(expected ?? '', "Property 'sendAll' does not exist");
  assert.equal(others, []);
});

test.run();
