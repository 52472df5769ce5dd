/** The memory that peers make channels hold, without connections: the limit, its shares, and progress of waiting payloads. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Account, Admission, Budget, type Charge, Class } from '../../nd/net/channel/budget.js';
import { type Answering, IncomingRequests } from '../../nd/net/channel/incoming-requests.js';
import { seeded } from '../helpers/random.js';

const MIB = 2 ** 20;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const owners: object[] = [];
/** An account whose owner is never garbage-collected, because that would end it. */
function accountIn(budget: Budget): Account {
  const owner = {};
  owners.push(owner);
  return new Account(budget, owner);
}

/** Requests admission of payloads of these sizes in MiB. Returns the charges of admitted ones. */
function entering(admission: Admission, ...mebibytes: number[]): Charge[] {
  const charges: Charge[] = [];
  for (const size of mebibytes) admission.pass(size * MIB, (charge) => charges.push(charge));
  return charges;
}

test('a connection holds at most as much as it leaves to the others', () => {
  const budget = new Budget(64 * MIB);
  const [one, two] = [new Admission(budget, Class.MESSAGES), new Admission(budget, Class.MESSAGES)];
  assert.is(entering(one, 8, 8, 8, 8, 8).length, 4);
  assert.is(entering(two, 8, 8, 8).length, 2);
  assert.is(budget.free, 16 * MIB);
});

test('a connection that holds nothing makes progress, because one payload of each class may exceed the limit, round-robin', async () => {
  const budget = new Budget(64 * MIB);
  const admissions = Array.from({ length: 4 }, () => new Admission(budget, Class.MESSAGES));
  const charges = admissions.map((admission) => entering(admission, 40));
  const entered = (): number[] => charges.map(({ length }) => length);
  assert.equal(entered(), [1, 0, 0, 0]);
  // Replies only wait for other replies.
  const reply = entering(new Admission(budget, Class.REPLIES), 40);
  assert.is(reply.length, 1);
  for (let n = 0; n < 3; n += 1) {
    charges[n]![0]!.release();
    await turn();
    assert.equal(
      entered(),
      [0, 1, 2, 3].map((admission) => (admission <= n + 1 ? 1 : 0)),
    );
  }
  charges[3]![0]!.release();
  reply[0]!.release();
  assert.is(budget.held, 0);
});

test('a server’s limit is part of that of the thread', async () => {
  const thread = new Budget(64 * MIB);
  const server = new Budget(16 * MIB, thread);
  const own = entering(new Admission(server, Class.REQUESTS), 4, 4, 4);
  assert.is(own.length, 2);
  const others = [0, 1, 2].flatMap(() => entering(new Admission(thread, Class.REQUESTS), 16));
  // 8 + 16 are held within the limit, so the second payload of 16 fits, and the third one exceeds it.
  assert.is(others.length, 3);
  const late = entering(new Admission(server, Class.REQUESTS), 4);
  assert.is(late.length, 1);
  assert.is(server.held, 12 * MIB);
  for (const charge of [...own, ...others, ...late]) charge.release();
  await turn();
  assert.is(own.length, 3);
  own[2]!.release();
  assert.equal([thread.held, server.held], [0, 0]);
});

test('each payload is charged at least a page, so the number of tiny payloads is limited', () => {
  const budget = new Budget(MIB);
  const charges: Charge[] = [];
  const admission = new Admission(budget, Class.MESSAGES);
  for (let n = 0; n < 1000; n += 1) admission.pass(1, (charge) => charges.push(charge));
  assert.is(charges.length, 128);
});

test('in random orders, the limit holds, and everything is admitted eventually', async () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const random = seeded(seed);
    const below = (n: number): number => Math.floor(random() * n);
    const budget = new Budget((8 + below(64)) * MIB);
    const part = new Budget((4 + below(32)) * MIB, budget);
    const held: { charge: Charge; kind: number }[] = [];
    let [passed, wanted] = [0, 0];
    const admissions = Array.from({ length: 12 }, (_, n) => {
      const kind = [Class.MESSAGES, Class.REQUESTS, Class.REPLIES][n % 3]!;
      return { kind, admission: new Admission(n < 6 ? part : budget, kind) };
    });
    for (let step = 0; step < 400; step += 1) {
      if (below(2) === 0) {
        const { admission, kind } = admissions[below(admissions.length)]!;
        wanted += 1;
        admission.pass(1 + below(20) * MIB, (charge) => {
          passed += 1;
          held.push({ charge, kind });
        });
      } else if (held.length > 0) held.splice(below(held.length), 1)[0]!.charge.release();
      if (below(4) === 0) await turn();
      for (const level of [budget, part]) assert.ok(level.held <= level.bytes && level.held >= 0);
    }
    // Each class progresses independently, although nothing of the others is released.
    for (const kind of [Class.REPLIES, Class.REQUESTS, Class.MESSAGES])
      for (;;) {
        await turn();
        const at = held.findIndex((one) => one.kind === kind);
        if (at < 0) break;
        held.splice(at, 1)[0]!.charge.release();
      }
    assert.is(passed, wanted, `seed ${seed}`);
    assert.equal([budget.held, part.held], [0, 0]);
  }
});

test('the end of a connection releases payloads that cannot be received, and messages once received', async () => {
  const budget = new Budget(64 * MIB);
  const account = accountIn(budget);
  const messages = entering(account.messages, 4, 4);
  entering(account.requests, 4);
  entering(account.replies, 4);
  account.answers.hold(4 * MIB);
  assert.is(budget.held, 20 * MIB);
  account.close();
  assert.is(budget.held, 8 * MIB);
  // Sending this reply has ended the connection.
  account.answers.hold(4 * MIB).release();
  account.answers.hold(4 * MIB);
  assert.is(budget.held, 8 * MIB);
  messages[0]!.release();
  assert.is(budget.held, 4 * MIB);
  account.end();
  messages[1]!.release();
  assert.is(budget.held, 0);
});

/** A responder with a limit, whose handler never replies. */
function stuck(limit: number): IncomingRequests {
  const answering: Partial<Answering> = { limit, full: () => false, whenReleased: () => {}, idle: () => {} };
  return new IncomingRequests(answering as Answering, () => new Promise(() => {}));
}

test('the time to cancel an unknown request does not depend on the number of waiting requests', () => {
  const responder = stuck(1);
  let looked = 0;
  for (let id = 0; id < 10_000; id += 1)
    responder.arrive({
      get id() {
        looked += 1;
        return id;
      },
      take: () => Buffer.alloc(0),
      drop: () => {},
    });
  looked = 0;
  for (let id = 20_000; id < 20_100; id += 1) responder.cancel(id);
  assert.is(looked, 0);
  for (let id = 9999; id > 0; id -= 1) responder.cancel(id);
  assert.ok(looked <= 3 * 10_000, `${looked}`);
  assert.ok(responder.busy);
});

test('unread replies prevent further requests from starting, except one per connection', async () => {
  const budget = new Budget(16 * MIB);
  const [hog, honest] = [accountIn(budget), accountIn(budget)];
  const held = [hog.answers.hold(12 * MIB), hog.answers.hold(12 * MIB)];
  assert.equal([hog.answers.full, honest.answers.full], [true, true]);
  let served = 0;
  const answers: (() => void)[] = [];
  const answering: Partial<Answering> = {
    limit: 10,
    full: () => honest.answers.full,
    whenReleased: (retry) => honest.whenReleased(retry),
    idle: () => {},
    answer: (_id, _bytes, gone) => {
      answers.push(gone);
      return { withdraw: () => false };
    },
  };
  const responder = new IncomingRequests(answering as Answering, (bytes) => {
    served += 1;
    return bytes;
  });
  for (let id = 0; id < 4; id += 1) responder.arrive({ id, take: () => Buffer.alloc(0), drop: () => {} });
  await turn();
  assert.is(served, 1);
  answers.shift()!();
  await turn();
  assert.is(served, 2);
  held[0]!.release();
  await turn();
  await turn();
  assert.is(served, 4);
  held[1]!.release();
});

test.run();
