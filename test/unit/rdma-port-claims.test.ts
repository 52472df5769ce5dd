/** RDMA ports of librdmacm: a failed claim leaves no ids. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { EpType } from '../../kernel-bridge/ioctl/constants.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import { PortClaims } from '../../kernel-bridge/kernel/verbs-hca/rdma-port-claims.js';

const PORT = 7000;

/** librdmacm with a number of ids, where binding the nth id fails with a status. */
function claims(most: number, statuses: readonly number[] = []) {
  const ids = new Set<number>();
  let next = 0;
  let bound = 0;
  const all = new PortClaims({
    create: () => {
      if (ids.size === most) throw new StatusError(Status.INSUFFICIENT_RESOURCES);
      ids.add(++next);
      return next;
    },
    bind: (_id, _gid, port) => ({ status: statuses[bound++] ?? Status.SUCCESS, port }),
    listen: () => Status.SUCCESS,
    destroy: (id) => void ids.delete(id),
  });
  return { ids, claim: () => all.claim(all, EpType.CONNECT, null, PORT, 0), all };
}

test('a claim on both families has an id for each, and its release destroys both', () => {
  const { ids, claim, all } = claims(2);
  const made = claim();
  assert.is(made.status, Status.SUCCESS);
  assert.is(ids.size, 2);
  all.release(all, made.claim);
  assert.is(ids.size, 0);
});

test('a claim that gets no id for the second family keeps none for the first', () => {
  const { ids, claim } = claims(1);
  assert.throws(claim, (error: StatusError) => error.status === Status.INSUFFICIENT_RESOURCES);
  assert.is(ids.size, 0);
});

test('a claim whose second family is refused keeps no id; without IPv6 it keeps the first', () => {
  const refused = claims(2, [Status.SUCCESS, Status.ADDRESS_ALREADY_EXISTS]);
  assert.is(refused.claim().status, Status.ADDRESS_ALREADY_EXISTS);
  assert.is(refused.ids.size, 0);
  const alone = claims(2, [Status.SUCCESS, Status.INVALID_ADDRESS]);
  assert.is(alone.claim().status, Status.SUCCESS);
  assert.is(alone.ids.size, 1);
});

test.run();
