// The HCA's table of queue pair transitions, tested cell by cell: from × to × type × every attribute, present and
// missing. The expectation is IBA 1 §11.2.5.2 (tables of Modify QP), written independently of the HCA's table.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type QpAttributeValues, QpMask, type SoftHca } from '../../kernel-bridge/hca/binding.js';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { QpState, QpType } from '../../kernel-bridge/ioctl/constants.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import { kernelOptionsSchema } from '../../kernel-bridge/options/options.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import {
  qpTypes as all,
  type QpAttributeName as Name,
  namesOf,
  qpRules as rules,
  type QpStateName as StateName,
} from '../helpers/qp-rules.js';

const addon = loadAddon();

const attributeNames = (Object.keys(QpMask) as Name[]).filter((name) => name !== 'state');
const maskOf = (names: string): number => namesOf(names).reduce((mask, name) => mask | QpMask[name], 0);

// On another host: a peer on this host would have to exist.
const home = gidOfAddress('127.0.0.1');
const good: Omit<QpAttributeValues, 'state' | 'currentState' | 'type' | 'qpn'> = {
  access: 0xf,
  pkeyIndex: 0,
  port: 1,
  qkey: 0x1234_5678,
  path: {
    source: home,
    destination: gidOfAddress('192.0.2.1'),
    flowLabel: 5,
    trafficClass: 3,
    hopLimit: 9,
    scopeId: 0,
  },
  pathMtu: 1024,
  destinationQpn: 0x12_3456,
  receivePsn: 0xab_cdef,
  sendPsn: 0xfe_dcba,
  responderResources: 3,
  initiatorDepth: 2,
  minRnrTimer: 13,
  ackTimeout: 0,
  retryCount: 6,
  rnrRetry: 5,
  patience: 3,
  extensions: 1,
};

function openHca(): SoftHca {
  return addon.openHca(kernelOptionsSchema.parse({}), () => {});
}

/** A queue pair per cell. */
class Bench {
  readonly hca = openHca();
  private readonly pd = this.hca.allocatePd().pd;
  private readonly rings: number[] = [];
  private readonly cq: number;
  private readonly cqWords: Uint32Array;

  constructor() {
    const bytes = abi.cqHeaderBytes + 16 * abi.cqeBytes;
    const { address, buffer } = this.ring(bytes);
    this.cqWords = new Uint32Array(buffer);
    this.cq = this.hca.createCq(address, bytes, 16).cq;
  }

  private ring(bytes: number) {
    const ring = addon.allocateRing(bytes);
    this.rings.push(ring.address);
    return ring;
  }

  /**
   * Runs with a fresh queue pair of a type in a state that legal steps reach; undefined results are impossible states.
   */
  inState(type: number, state: StateName, run: (qp: number) => void): void {
    const bytes = abi.qpHeaderBytes + 128 + 32;
    const ring = addon.allocateRing(bytes);
    const made = this.hca.createQp({
      pd: this.pd,
      sendCq: this.cq,
      receiveCq: this.cq,
      srq: 0,
      pkeyTable: 0,
      type,
      signalAll: false,
      ringAddress: ring.address,
      ringBytes: bytes,
      sendEntries: 1,
      sendStride: 128,
      sendSge: 1,
      maxInline: 0,
      receiveEntries: 1,
      receiveStride: 32,
      receiveSge: 1,
      token: 1,
    });
    assert.is(statusName(made.status), 'SUCCESS');
    try {
      const typeName = all.find((name) => QpType[name] === type)!;
      const steps: [StateName, StateName][] = [
        ['RESET', 'INIT'],
        ['INIT', 'RTR'],
        ['RTR', 'RTS'],
        ['RTS', 'SQD'],
      ];
      const reach: Record<StateName, number> = {
        RESET: 0,
        INIT: 1,
        RTR: 2,
        RTS: 3,
        SQD: 4,
        SQERROR: 3,
        ERROR: 0,
      };
      for (const [from, to] of steps.slice(0, reach[state])) {
        const rule = rules.find((one) => one.from === from && one.to === to && one.types.includes(typeName))!;
        const status = this.modify(made.qp, QpMask.state | maskOf(rule.required), { state: QpState[to] });
        assert.is(statusName(status), 'SUCCESS', `${typeName}: ${from} to ${to}`);
      }
      if (state === 'ERROR') this.modify(made.qp, QpMask.state, { state: QpState.ERROR });
      if (state === 'SQERROR') {
        // A send from unregistered memory fails here.
        const words = new Uint32Array(ring.buffer);
        const wqe = abi.qpHeaderBytes / 4;
        words[wqe + abi.swSgeCount] = 1;
        words[wqe + abi.sendWqeHeaderBytes / 4 + abi.sgeLength] = 8;
        Atomics.store(words, abi.qpSendProducer, 1);
        addon.doorbell[0] = made.qp;
        addon.ring();
      }
      assert.is(this.state(made.qp), QpState[state], `${typeName} is in ${state}`);
      run(made.qp);
    } finally {
      this.hca.destroyQp(made.qp);
      // Completions are ignored, but must not overrun the queue.
      Atomics.store(this.cqWords, abi.cqConsumer, Atomics.load(this.cqWords, abi.cqProducer));
      addon.releaseRing(ring.address);
    }
  }

  state(qp: number): number {
    return this.hca.queryQp(qp).attributes.state;
  }

  modify(qp: number, mask: number, attributes: Partial<QpAttributeValues>): number {
    return this.hca.modifyQp(qp, mask, { ...good, currentState: this.state(qp), ...attributes });
  }

  close(): void {
    this.hca.destroyCq(this.cq);
    this.hca.deallocatePd(this.pd);
    for (const address of this.rings) addon.releaseRing(address);
    assert.equal((({ pd, cq, qp }) => [pd, cq, qp])(this.hca.objectCounts()), [0, 0, 0]);
    this.hca.close();
  }
}

const states = Object.keys(QpState) as StateName[];

for (const typeName of all) {
  test(`${typeName}: every transition with every attribute there and missing`, () => {
    const bench = new Bench();
    const type = QpType[typeName];
    let cells = 0;
    for (const from of states) {
      // A reliable queue pair has no send queue error.
      if (from === 'SQERROR' && typeName === 'RC') continue;
      for (const to of states) {
        const rule = rules.find((one) => one.from === from && one.to === to && one.types.includes(typeName));
        const always = to === 'RESET' || to === 'ERROR';
        const attempt = (
          names: string,
          mask: number,
          expected: number,
          more: Partial<QpAttributeValues> = {},
        ) => {
          cells++;
          bench.inState(type, from, (qp) => {
            const before = bench.state(qp);
            const what = `${typeName} ${from} to ${to} with '${names}'`;
            const status = bench.modify(qp, QpMask.state | mask, { state: QpState[to], ...more });
            assert.is(statusName(status), statusName(expected), what);
            assert.is(bench.state(qp), status === Status.SUCCESS ? QpState[to] : before, what);
          });
        };
        if (!rule && !always) {
          attempt('', 0, Status.INVALID_DEVICE_STATE);
          for (const name of attributeNames) attempt(name, QpMask[name], Status.INVALID_DEVICE_STATE);
          continue;
        }
        const required = maskOf(rule?.required ?? '');
        const optional = maskOf(rule?.optional ?? '') | QpMask.currentState;
        attempt('what it takes', required, Status.SUCCESS);
        attempt('all it may have', required | optional, Status.SUCCESS);
        attempt('a state that it is not in', required | QpMask.currentState, Status.INVALID_DEVICE_STATE, {
          currentState: (QpState[from] + 1) % states.length,
        });
        for (const name of attributeNames) {
          const bit = QpMask[name];
          if ((required & bit) !== 0) attempt(`all but ${name}`, required & ~bit, Status.INVALID_PARAMETER);
          else
            attempt(
              `${name} more`,
              required | bit,
              (optional & bit) !== 0 ? Status.SUCCESS : Status.INVALID_PARAMETER,
            );
        }
      }
    }
    assert.ok(cells > 700, `${cells} cells`);
    bench.close();
  });
}

test('values out of their ranges are refused, those at the ends are taken', () => {
  const bench = new Bench();
  const { maxReadDepth } = bench.hca.limits;
  const ends: [Name, StateName, StateName, bad: number[], fine: number[]][] = [
    ['port', 'RESET', 'INIT', [0, 2, 255], [1]],
    ['access', 'RESET', 'INIT', [0x20, 0x80], [0, 0x1f]],
    ['pathMtu', 'INIT', 'RTR', [0, 128, 255, 1000, 8192], [256, 512, 1024, 2048, 4096]],
    ['destinationQpn', 'INIT', 'RTR', [2 ** 24, 2 ** 32], [2, 0xff_fffe]],
    ['receivePsn', 'INIT', 'RTR', [2 ** 24, -1], [0, 0xff_ffff]],
    ['responderResources', 'INIT', 'RTR', [maxReadDepth + 1], [0, maxReadDepth]],
    ['minRnrTimer', 'INIT', 'RTR', [32], [0, 31]],
    ['sendPsn', 'RTR', 'RTS', [2 ** 24], [0, 0xff_ffff]],
    ['initiatorDepth', 'RTR', 'RTS', [maxReadDepth + 1], [0, maxReadDepth]],
    ['ackTimeout', 'RTR', 'RTS', [32], [0, 31]],
    ['retryCount', 'RTR', 'RTS', [8], [0, 7]],
    ['rnrRetry', 'RTR', 'RTS', [8], [0, 7]],
    ['patience', 'INIT', 'RTR', [4], [0, 3]],
  ];
  for (const [name, from, to, bad, fine] of ends) {
    const rule = rules.find((one) => one.from === from && one.to === to && one.types.includes('RC'))!;
    for (const [values, expected] of [
      [bad, 'INVALID_PARAMETER'],
      [fine, 'SUCCESS'],
    ] as const) {
      for (const value of values) {
        bench.inState(QpType.RC, from, (qp) => {
          const mask = QpMask.state | maskOf(rule.required) | QpMask[name];
          const status = bench.modify(qp, mask, { state: QpState[to], [name]: value });
          assert.is(statusName(status), expected, `${name} ${value}`);
          if (expected !== 'SUCCESS') return;
          const found = bench.hca.queryQp(qp).attributes;
          assert.is(found[name as keyof QpAttributeValues], value, `${name} as queried`);
        });
      }
    }
  }
  bench.close();
});

test('connecting is the three steps in one, from RESET and INIT only, and ends at the one that is refused', () => {
  const bench = new Bench();
  const ruleOf = (typeName: 'RC' | 'UC', from: StateName, to: StateName): number =>
    maskOf(rules.find((one) => one.from === from && one.to === to && one.types.includes(typeName))!.required);
  for (const typeName of ['RC', 'UC'] as const) {
    const type = QpType[typeName];
    const steps = {
      init: ruleOf(typeName, 'RESET', 'INIT'),
      rtr: ruleOf(typeName, 'INIT', 'RTR'),
      rts: ruleOf(typeName, 'RTR', 'RTS'),
    };
    let stepped: Partial<QpAttributeValues> = {};
    bench.inState(type, 'RTS', (qp) => {
      stepped = { ...bench.hca.queryQp(qp).attributes, qpn: 0 };
    });
    for (const from of states) {
      if (from === 'SQERROR' && typeName === 'RC') continue;
      bench.inState(type, from, (qp) => {
        const before = bench.state(qp);
        const status = bench.hca.connectQp(qp, steps, good);
        const may = from === 'RESET' || from === 'INIT';
        assert.is(statusName(status), may ? 'SUCCESS' : 'INVALID_DEVICE_STATE', `${typeName} from ${from}`);
        if (may) assert.equal({ ...bench.hca.queryQp(qp).attributes, qpn: 0 }, stepped);
        else assert.is(bench.state(qp), before);
      });
    }
    const refused = [
      [{ ...steps, init: steps.init & ~QpMask.port }, 'RESET'],
      [{ ...steps, rtr: steps.rtr & ~QpMask.receivePsn }, 'INIT'],
      [{ ...steps, rts: steps.rts & ~QpMask.sendPsn }, 'RTR'],
    ] as const;
    for (const [without, left] of refused) {
      bench.inState(type, 'RESET', (qp) => {
        assert.is(statusName(bench.hca.connectQp(qp, without, good)), 'INVALID_PARAMETER');
        assert.is(bench.state(qp), QpState[left], `${typeName} without an attribute: left in ${left}`);
      });
    }
    bench.inState(type, 'RESET', (qp) => {
      const status = bench.hca.connectQp(qp, steps, { ...good, sendPsn: 2 ** 24 });
      assert.is(statusName(status), 'INVALID_PARAMETER');
      assert.is(bench.state(qp), QpState.RESET);
    });
  }
  bench.close();
});

test('a query answers everything that was set', () => {
  const bench = new Bench();
  bench.inState(QpType.RC, 'RTS', (qp) => {
    const { attributes } = bench.hca.queryQp(qp);
    // The patience and the extensions are optional.
    const { qkey: _qkey, patience: _patience, extensions: _extensions, ...set } = good;
    for (const [name, value] of Object.entries(set)) {
      assert.equal(attributes[name as keyof QpAttributeValues], value, name);
    }
    assert.equal(
      [attributes.state, attributes.currentState, attributes.type],
      [QpState.RTS, QpState.RTS, QpType.RC],
    );
  });
  bench.close();
});

test.run();
