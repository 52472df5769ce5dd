import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import {
  DeviceNamespace,
  DeviceObject,
  DriverObject,
  References,
} from '../../kernel-bridge/kernel/io-manager/device-object.js';
import {
  Irp,
  type IrpEvent,
  IrpMajor,
  IrpQueue,
  type IrpState,
  irpTransitions,
} from '../../kernel-bridge/kernel/io-manager/irp.js';
import { DriverFault } from '../../kernel-bridge/kernel/io-manager/irql.js';
import { WorkItems } from '../../kernel-bridge/kernel/io-manager/work-items.js';

function irp(more: { input?: Uint8Array; outputLength?: number } = {}) {
  const completions: number[] = [];
  const one = new Irp({
    major: IrpMajor.deviceControl,
    requestorMode: 'user',
    onComplete: ({ ioStatus }) => completions.push(ioStatus.status),
    ...more,
  });
  return { irp: one, completions };
}

/** Moves an IRP to each state by the shortest allowed path. */
const ways: Record<IrpState, IrpEvent[]> = {
  allocated: [],
  dispatched: ['dispatch'],
  marked: ['dispatch', 'mark'],
  completedInline: ['dispatch', 'complete'],
  completedMarked: ['dispatch', 'mark', 'complete'],
  pending: ['dispatch', 'mark', 'returnPending'],
  completed: ['dispatch', 'complete', 'returnStatus'],
};

test('the IRP table: every state is reached as defined, and every other step is a fault that names the rule', () => {
  for (const [state, way] of Object.entries(ways) as [IrpState, IrpEvent[]][]) {
    let at: IrpState = 'allocated';
    for (const event of way) {
      const cell: { next: IrpState } | { fault: string } = irpTransitions[at][event];
      assert.ok('next' in cell, `${at} ${event}`);
      if ('next' in cell) at = cell.next;
    }
    assert.is(at, state);
    const cells = Object.values(irpTransitions[state]);
    assert.is(cells.length, 5);
    for (const cell of cells) if ('fault' in cell) assert.ok(cell.fault.length > 10);
  }
});

test('an IRP follows the table: each step from each state', () => {
  for (const [state, way] of Object.entries(ways) as [IrpState, IrpEvent[]][]) {
    const steps: Record<IrpEvent, (one: Irp) => unknown> = {
      dispatch: (one) => one.dispatch(() => Status.PENDING),
      mark: (one) => one.markPending(),
      complete: (one) => one.complete(Status.SUCCESS),
      // The return of a routine, which can only be tested there.
      returnPending: () => undefined,
      returnStatus: () => undefined,
    };
    for (const event of ['dispatch', 'mark', 'complete'] as const) {
      const { irp: one } = irp();
      const cell = irpTransitions[state][event];
      let tried = false;
      const attempt = () => {
        tried = true;
        assert.is(one.state, state);
        assert.is(one.completed, /^completed/.test(state));
        if (event === 'dispatch' && state === 'allocated') return;
        if ('fault' in cell) {
          assert.throws(
            () => steps[event](one),
            (e: unknown) => e instanceof DriverFault && e.message.endsWith(cell.fault),
          );
          assert.is(one.state, state);
        } else {
          steps[event](one);
          assert.is(one.state, cell.next);
        }
      };
      const within = way.at(-1) !== 'returnPending' && way.at(-1) !== 'returnStatus' && way.length > 0;
      const routine = () => {
        for (const step of way.slice(1)) steps[step](one);
        if (within) attempt();
        if (one.state === 'dispatched') one.complete(Status.SUCCESS);
        return one.returnStatus;
      };
      if (way.length > 0) one.dispatch(routine);
      if (!within) attempt();
      assert.ok(tried);
    }
  }
});

test('a request completed inline returns its status, one marked pending returns PENDING first', () => {
  const inline = irp();
  assert.is(
    inline.irp.dispatch((one) => one.complete(Status.SUCCESS, 3)),
    Status.SUCCESS,
  );
  assert.is(inline.irp.ioStatus.information, 3);
  const pended = irp();
  assert.is(
    pended.irp.dispatch((one) => one.markPending()),
    Status.PENDING,
  );
  assert.equal(pended.completions, []);
  pended.irp.complete(Status.TIMEOUT);
  assert.equal(pended.completions, [Status.TIMEOUT]);
});

test('completing while still dispatching is permitted once the IRP was marked', () => {
  const { irp: one, completions } = irp();
  const status = one.dispatch(() => {
    one.markPending();
    one.complete(Status.SUCCESS, 0);
    return one.returnStatus;
  });
  assert.is(status, Status.PENDING);
  assert.is(one.state, 'completed');
  assert.equal(completions, [Status.SUCCESS]);
});

test('violations are detected: never completed, completed twice, PENDING unmarked, another status returned', () => {
  const fault = (run: () => unknown, rule: RegExp) =>
    assert.throws(run, (e: unknown) => e instanceof DriverFault && rule.test(e.message));
  fault(() => irp().irp.dispatch(() => Status.SUCCESS), /neither completed nor marked pending/);
  fault(() => irp().irp.dispatch(() => Status.PENDING), /without being marked/);
  fault(
    () => irp().irp.dispatch((one) => one.complete(Status.SUCCESS) + one.complete(Status.SUCCESS)),
    /twice/,
  );
  fault(() => irp().irp.dispatch((one) => one.complete(Status.SUCCESS) + Status.NOT_FOUND), /returned/);
  fault(() => irp().irp.dispatch((one) => one.markPending() - Status.PENDING), /other than PENDING/);
  fault(() => irp().irp.dispatch((one) => one.complete(Status.PENDING)), /PENDING/);
  const { irp: pended } = irp();
  pended.dispatch((one) => one.markPending());
  pended.complete(Status.SUCCESS);
  fault(() => pended.complete(Status.SUCCESS), /twice/);
});

test('completing with the cancel routine still set is a fault, and the caller gets only one result', () => {
  const { irp: one, completions } = irp();
  one.dispatch(() => one.markPending());
  one.setCancelRoutine((cancelled) => cancelled.complete(Status.CANCELED));
  assert.throws(() => one.complete(Status.SUCCESS), /cancel routine/);
  assert.equal(completions, []);
});

test('cancel clears the cancel routine before calling it, and a second cancel finds none', () => {
  const { irp: one, completions } = irp();
  let runs = 0;
  one.dispatch(() => one.markPending());
  one.setCancelRoutine((cancelled) => {
    runs++;
    assert.is(cancelled.setCancelRoutine(undefined), undefined);
    cancelled.complete(Status.CANCELED);
  });
  assert.ok(one.cancel());
  assert.not.ok(one.cancel());
  assert.is(runs, 1);
  assert.equal(completions, [Status.CANCELED]);
});

test('a driver without a cancel routine keeps the IRP and can check that cancellation was requested', () => {
  const { irp: one } = irp();
  one.dispatch(() => one.markPending());
  assert.not.ok(one.cancel());
  assert.ok(one.cancelRequested);
  assert.is(one.state, 'pending');
});

test('K9: the output starts as zeros, no matter what the input was', () => {
  const { irp: one } = irp({ input: new Uint8Array(32).fill(0xee), outputLength: 64 });
  const input = one.takeInput();
  assert.is(input.length, 32);
  assert.ok(input.every((byte) => byte === 0xee));
  assert.is(one.output.length, 64);
  assert.ok(one.output.every((byte) => byte === 0));
});

test('K10: writing the output does not change the input', () => {
  const { irp: one } = irp({ input: Uint8Array.of(1, 2, 3, 4), outputLength: 4 });
  const input = one.takeInput();
  one.output.fill(9);
  assert.equal(input, Uint8Array.of(1, 2, 3, 4));
});

test('reused output memory is zero for the next request, and is never shared by two', () => {
  const outputOf = (length: number) => irp({ outputLength: length }).irp;
  const [first, other] = [outputOf(48), outputOf(48)];
  first.output.fill(0xee);
  other.output.fill(0xdd);
  assert.is.not(first.output, other.output);
  const used = first.output;
  first.endOutput();
  first.endOutput();
  const [next, another] = [outputOf(48), outputOf(48)];
  assert.is(next.output, used);
  assert.ok(next.output.every((byte) => byte === 0));
  assert.is.not(another.output, used);
  assert.ok(other.output.every((byte) => byte === 0xdd));
  // A late reader of a released output gets different bytes.
  assert.is.not(first.output, used);
  for (const length of [0, 47, 49, 513]) {
    const one = outputOf(length);
    const bytes = one.output;
    assert.is(bytes.length, length);
    one.endOutput();
    assert.is(outputOf(length).output === bytes, length > 0 && length <= 512, `${length} bytes`);
  }
});

test('an output buffer of a gigabyte does not cost a gigabyte', () => {
  const { irp: one } = irp({ outputLength: 0xffff_ffff });
  assert.ok(one.outputCapacity <= 1 << 23);
  assert.is(one.stack.outputLength, 0xffff_ffff);
});

test('a queue returns IRPs in order and only once, even if one in the middle is cancelled', () => {
  const cancelled: string[] = [];
  const queue = new IrpQueue<string>((_irp, name) => cancelled.push(name));
  const [a, b, c] = [irp(), irp(), irp()];
  for (const [name, { irp: one }] of Object.entries({ a, b, c })) one.dispatch(() => queue.insert(one, name));
  assert.is(queue.size, 3);
  b.irp.cancel();
  assert.equal(cancelled, ['b']);
  assert.equal(b.completions, [Status.CANCELED]);
  assert.is(queue.removeFirst()?.context, 'a');
  assert.is(queue.removeFirst()?.context, 'c');
  assert.is(queue.removeFirst(), undefined);
  assert.not.ok(a.irp.cancel(), 'taken out: the cancel routine is gone');
});

test('references: the end follows the last release, and new users are rejected once the end was requested', () => {
  const references = new References();
  let ended = 0;
  references.acquire();
  references.acquire();
  references.end(() => ended++);
  assert.throws(() => references.acquire(), /end\(\) was called/);
  references.release();
  assert.is(ended, 0);
  references.release();
  assert.is(ended, 1);
  assert.throws(() => references.release(), /more often/);
});

const dispatch = {
  create: () => 0,
  deviceControl: () => 0,
  cleanup: () => {},
  close: () => {},
};

test('unloading a driver waits for its devices, and removing a device waits for its users', () => {
  const driver = new DriverObject('d', dispatch);
  const device = new DeviceObject(driver, '\\Device\\x', undefined);
  const order: string[] = [];
  device.references.acquire();
  driver.unload(() => order.push('unloaded'));
  device.remove(() => order.push('removed'));
  assert.equal(order, []);
  device.references.release();
  assert.equal(order, ['unloaded', 'removed']);
});

test('names: case does not matter, links are followed, the longest device name wins, loops end', () => {
  const names = new DeviceNamespace();
  const driver = new DriverObject('d', dispatch);
  const short = new DeviceObject(driver, '\\Device\\ibal', undefined);
  const long = new DeviceObject(driver, '\\Device\\ibal\\special', undefined);
  names.add(short);
  names.add(long);
  names.link('\\DosDevices\\ibal', '\\Device\\ibal');
  names.link('\\DosDevices\\a', '\\DosDevices\\b');
  names.link('\\DosDevices\\b', '\\DosDevices\\a');
  assert.equal(names.resolve('\\\\.\\IBAL\\00ff'), { device: short, relativeName: '00ff' });
  assert.equal(names.resolve('\\device\\ibal\\SPECIAL\\x'), { device: long, relativeName: 'x' });
  assert.is(names.resolve('\\Device\\ibalx'), Status.OBJECT_NAME_NOT_FOUND);
  assert.is(names.resolve('\\\\.\\a'), Status.OBJECT_NAME_INVALID);
  assert.is(names.resolve('ibal'), Status.OBJECT_NAME_INVALID);
  assert.is(names.resolve(`\\${'x'.repeat(5000)}`), Status.OBJECT_NAME_INVALID);
  assert.throws(() => names.add(new DeviceObject(driver, '\\DEVICE\\IBAL', undefined)), /already in use/);
});

test('a request whose work item throws ends in INTERNAL_ERROR, or with the status it was completed with, and the fault is reported', () => {
  const faults: string[] = [];
  const work = new WorkItems((item) => {
    try {
      item();
    } catch (error) {
      faults.push(String(error));
    }
  });
  const [fails, done, later] = [irp(), irp(), irp()];
  fails.irp.dispatch((one) =>
    work.pend(one, () => {
      throw new Error('before');
    }),
  );
  done.irp.dispatch((one) =>
    work.pend(one, () => {
      one.complete(Status.SUCCESS, 0);
      throw new Error('after');
    }),
  );
  later.irp.dispatch((one) => work.pend(one, () => one.complete(Status.ALERTED)));
  work.run();
  assert.equal(
    [fails, done, later].map(({ completions }) => completions),
    [[Status.INTERNAL_ERROR], [Status.SUCCESS], [Status.ALERTED]],
  );
  assert.equal(faults, ['Error: before', 'Error: after']);
});

test.run();
