// The parts of a vendor's provider that do not need Windows: the location of its DLL, its statuses, and the request of a completion.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Status } from '../../kernel-bridge/ioctl/index.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { placedFields } from '../../kernel-bridge/uvp/vendor/c-layout.js';
import {
  IB_VERBS_PROCESSING_DONE,
  ibFailure,
  postFailure,
  statusOfIb,
} from '../../kernel-bridge/uvp/vendor/ib-status.js';
import { type Folders, libraryPath } from '../../kernel-bridge/uvp/vendor/native-library.js';
import {
  OrderedRequests,
  positionOf,
  Queue,
  requestId,
  SharedRequests,
} from '../../kernel-bridge/uvp/vendor/request-ids.js';
import { swapped, uvpLayouts } from '../../kernel-bridge/uvp/vendor/uvp-layouts.js';
import { uvpSlots } from '../../kernel-bridge/uvp/vendor/uvp-slots.js';
import { refusalText } from '../helpers/outcome.js';

const SYSTEM = 'C:\\Windows\\System32';
const STORE = `${SYSTEM}\\DriverStore\\FileRepository`;

/** A simulated file system with these files and links. */
function folders(files: readonly string[], links: Readonly<Record<string, string>> = {}): Folders {
  return {
    file: (path) => links[path] ?? files.find((file) => file.toLowerCase() === path.toLowerCase()),
    list: (folder) =>
      files
        .filter((file) => file.startsWith(`${folder}\\`))
        .map((file) => file.slice(folder.length + 1).split('\\')[0]!),
  };
}

test('a DLL is loaded from the system folder rather than the driver store', () => {
  const inSystem = `${SYSTEM}\\mlx4u.dll`;
  const inStore = `${STORE}\\mlx4.inf_amd64_1\\mlx4u.dll`;
  assert.is(libraryPath('mlx4u', SYSTEM, folders([inStore, inSystem])), inSystem);
  assert.is(libraryPath('mlx4u', SYSTEM, folders([inStore])), inStore);
});

test('links are followed, and links to other folders are refused', () => {
  const named = `${SYSTEM}\\v.dll`;
  const inside = `${STORE}\\one\\v.dll`;
  assert.is(libraryPath('v', SYSTEM, folders([], { [named]: inside })), inside);
  for (const outside of [
    'C:\\Users\\v.dll',
    'C:\\Windows\\System32evil\\v.dll',
    '\\\\server\\share\\v.dll',
  ]) {
    assert.match(
      refusalText(() => libraryPath('v', SYSTEM, folders([], { [named]: outside }))),
      /NOT_SUPPORTED: .* is a link to .*Providers are only loaded from/,
    );
  }
});

test('two packages with a DLL, and none', () => {
  const two = folders([`${STORE}\\old\\v.dll`, `${STORE}\\new\\v.dll`]);
  assert.match(
    refusalText(() => libraryPath('v', SYSTEM, two)),
    /Several driver packages contain v\.dll.*old.*new/,
  );
  assert.match(
    refusalText(() => libraryPath('v', SYSTEM, folders([]))),
    /neither in .* nor in .*FileRepository/,
  );
});

test('a name must not be a path', () => {
  const any: Folders = { file: (path) => path, list: () => [] };
  for (const name of ['', '..', 'a\\b', 'a/b', 'C:v', '.v', 'a..b', 'v\0', 'ü', 'x'.repeat(28), '-v']) {
    assert.match(
      refusalText(() => libraryPath(name, SYSTEM, any)),
      /^NOT_SUPPORTED: The name of the device's provider must be .*; got '/s,
      name,
    );
  }
  assert.is(libraryPath('x'.repeat(27), SYSTEM, any), `${SYSTEM}\\${'x'.repeat(27)}.dll`);
});

test('statuses of a provider, by their numbers', () => {
  const expected: readonly (readonly [number, number])[] = [
    [0, Status.SUCCESS],
    [1, Status.INSUFFICIENT_RESOURCES],
    [2, Status.NO_MEMORY],
    [3, Status.INVALID_PARAMETER],
    [6, Status.TIMEOUT],
    [7, Status.CANCELED],
    [9, Status.ACCESS_VIOLATION],
    [10, Status.NOT_SUPPORTED],
    [11, Status.BUFFER_OVERFLOW],
    [13, Status.INVALID_DEVICE_STATE],
    [17, Status.DEVICE_BUSY],
    [22, Status.DATA_OVERRUN],
    [26, Status.INVALID_ADDRESS],
    [30, Status.INVALID_HANDLE],
    [42, Status.INVALID_HANDLE],
    [43, Status.UNKNOWN_ERROR],
    [44, Status.REMOTE_OP_ERROR],
    [46, Status.INVALID_PARAMETER],
    [49, Status.INVALID_PORT_HANDLE],
    [54, Status.UNKNOWN_ERROR],
    [55, Status.UNKNOWN_ERROR],
    [0xffff_ffff, Status.UNKNOWN_ERROR],
  ];
  for (const [result, status] of expected) assert.is(statusOfIb(result), status, String(result));
  assert.is(IB_VERBS_PROCESSING_DONE, 45);
  assert.match(ibFailure('post_send', 22).message, /post_send .*returned IB_INVALID_MAX_SGE/);
  assert.match(
    ibFailure('post_send', 99).message,
    /post_send .*returned 99, which is not an ib_api_status_t/,
  );
  assert.is(postFailure('post_send', 1).status, Status.NO_MORE_ENTRIES);
});

test('requests complete in order, silent ones with the next, and positions wrap around', () => {
  const requests = new OrderedRequests(3);
  for (let round = 0; round < 10; round++) {
    const first = requests.next;
    for (const i of [0, 1, 2]) {
      assert.is(requests.full, false);
      requests.posted(`${round}.${i}`, i);
    }
    assert.is(requests.full, true);
    assert.is(requests.lengthOf(first + 2), 2);
    assert.is(requests.take(first + 1), `${round}.1`);
    assert.is(requests.has(first), false, 'it completed with the one behind it');
    assert.is(requests.has(first + 2), true);
    assert.is(requests.has(first + 3), false);
    assert.is(requests.take(first + 2), `${round}.2`);
  }
  requests.posted('before the reset', 0);
  const stale = requests.next - 1;
  requests.clear();
  assert.is(requests.has(stale), false);
  assert.is(requests.full, false);
  assert.is(positionOf(requestId(2 ** 30 - 1, Queue.INVALIDATE)), 2 ** 30 - 1);
});

test('shared Receives complete in any order', () => {
  const requests = new SharedRequests(3);
  const positions = ['a', 'b', 'c'].map((context) => {
    const position = requests.next;
    requests.posted(context);
    return position;
  });
  assert.is(requests.full, true);
  assert.is(requests.take(positions[1]!), 'b');
  assert.is(requests.has(positions[1]!), false);
  assert.is(requests.next, positions[1]);
  requests.posted('d');
  assert.equal(
    [positions[2], positions[1], positions[0]].map((position) => requests.take(position!)),
    ['c', 'd', 'a'],
  );
});

test('SGEs in our rings have the provider’s layout', () => {
  const { localDs } = uvpLayouts(8);
  assert.is(localDs.size, abi.sgeBytes);
  assert.equal(
    placedFields(localDs).map(({ path, offset }) => [path, offset / 4]),
    [
      ['vaddr', abi.sgeAddressLo],
      ['length', abi.sgeLength],
      ['lkey', abi.sgeLkey],
    ],
  );
});

test('the table has 68 functions, at their indexes', () => {
  assert.is(uvpSlots.length, 68);
  for (const [index, name] of [
    [0, 'pre_open_ca'],
    [30, 'pre_create_qp'],
    [52, 'bind_mw'],
    [53, 'post_send'],
    [64, 'nd_modify_qp'],
    [67, 'poll_cq_array'],
  ] as const) {
    assert.is(uvpSlots[index]!.name, name);
  }
  assert.is(uvpLayouts(8).uvpInterface.size, 544);
  assert.is(uvpLayouts(4).uvpInterface.size, 272);
});

test('network order', () => {
  assert.is(swapped(0x01020304), 0x04030201);
  assert.is(swapped(0xff), 0xff000000);
});

test.run();
