/** The control device: its names, its table of codes, and rejected requests. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import * as bridge from '../../kernel-bridge/index.js';
import { IbatCode, IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { CONTROL_DEVICE, controlNames, controlTable } from '../../kernel-bridge/ioctl/control.js';
import { statusName } from '../../kernel-bridge/ioctl/status.js';
import { ChangeCount, WvIoGuid } from '../../kernel-bridge/ioctl/structs.js';
import { KernelRig } from '../helpers/kernel-rig.js';

const nothing: Uint8Array = new Uint8Array(0);
const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

function rig() {
  const kernel = new KernelRig();
  const open = (name: string) => kernel.open(name);
  const status = (file: number, code: number, input = nothing, room = 65_536): string =>
    statusName(kernel.control(code, input, room, file).status);
  return { kernel, open, status };
}

/** A complete input for each request, and its result with the rig's kernel. */
const requests: Readonly<Record<string, readonly [input: Uint8Array, status: string]>> = {
  QUERY: [nothing, 'SUCCESS'],
  INTERFACES: [nothing, 'SUCCESS'],
  UNPLUG: [WvIoGuid.encode({ guid: 1n }), 'NO_SUCH_DEVICE'],
  PLUG: [WvIoGuid.encode({ guid: 1n }), 'NO_SUCH_DEVICE'],
  FATAL: [WvIoGuid.encode({ guid: 1n }), 'NO_SUCH_DEVICE'],
  QUERY_REMOVE: [WvIoGuid.encode({ guid: 1n }), 'NO_SUCH_DEVICE'],
  LOAD: [json({ name: 'x', url: 'file:///nowhere.js' }), 'PENDING'],
  UNLOAD: [json({ name: 'x' }), 'PENDING'],
  SET_PKEYS: [json([0xffff]), 'SUCCESS'],
  AWAIT_CHANGE: [ChangeCount.encode({ count: 0 }), 'SUCCESS'],
};

test('each name opens the device, which serves every code of the table', () => {
  const { COUNTERS_DEVICE, DRIVERS_DEVICE, FAULTS_DEVICE, SETTINGS_DEVICE } = bridge;
  for (const name of [COUNTERS_DEVICE, DRIVERS_DEVICE, FAULTS_DEVICE, SETTINGS_DEVICE])
    assert.ok(controlNames.includes(name));
  assert.equal(
    controlTable.map((row) => row.name),
    Object.keys(requests),
  );
  for (const name of controlNames) {
    const { open, status, kernel } = rig();
    const file = open(name).answer!.information;
    for (const row of controlTable) {
      const [input, expected] = requests[row.name]!;
      assert.is(status(file, row.code, input), expected, `${name} ${row.name}`);
    }
    assert.is(statusName(open(`${name}\\more`).status), 'OBJECT_NAME_NOT_FOUND');
    assert.equal(kernel.faults, []);
  }
});

test('codes are distinct, and each device rejects those of the others', () => {
  const { kernel, open, status } = rig();
  const codes = controlTable.map(({ code }) => code);
  assert.is(new Set(codes).size, codes.length);
  const [control, ibat] = [CONTROL_DEVICE, '\\\\.\\ibat'].map((name) => open(name).answer!.information);
  for (const code of [...Object.values(IoctlCode), ...Object.values(IbatCode), 0, 0x0022_240c])
    assert.is(status(control!, code), 'PROCEDURE_NOT_FOUND');
  for (const code of codes) {
    assert.is(status(ibat!, code), 'PROCEDURE_NOT_FOUND');
    assert.is(status(kernel.file, code), 'PROCEDURE_NOT_FOUND');
  }
});

test('short inputs and outputs, and malformed inputs, are rejected', () => {
  const { open, status } = rig();
  const file = open(CONTROL_DEVICE).answer!.information;
  for (const { name, code, input, output } of controlTable) {
    const [whole] = requests[name]!;
    if (input) assert.is(status(file, code, whole.subarray(1)), 'BUFFER_TOO_SMALL', name);
    if (output) assert.is(status(file, code, whole, output.size - 1), 'BUFFER_TOO_SMALL', name);
  }
  const { QUERY, INTERFACES } = bridge.CountersCode;
  for (const code of [QUERY, INTERFACES]) assert.is(status(file, code, nothing, 8), 'BUFFER_TOO_SMALL');
  const { LOAD, UNLOAD } = bridge.DriversCode;
  for (const text of ['', '{', 'null', '7', '{"url":"file:///x"}', '{"name":"x","url":5}']) {
    const input = new TextEncoder().encode(text);
    for (const code of [LOAD, UNLOAD, bridge.SettingsCode.SET_PKEYS])
      assert.is(status(file, code, input), 'INVALID_PARAMETER', text);
  }
});

test.run();
