/** Broken completion queues of SPI v1. */
import { type INDAdapter, type NdResult, type Overlapped, Status } from '../../index.js';
import { around, insteadOf, type Mutant, mutantV1 } from './mutant.js';

/** Returns a request that does not complete by itself. */
function never(adapter: INDAdapter): Overlapped<void> {
  const queue = adapter.createCompletionQueue(1);
  return queue.notify('errors');
}

/** Changes results on their way to the client. */
function results(name: string, breaks: string, cases: string, change: (result: NdResult) => void): Mutant {
  return mutantV1(name, breaks, cases, {
    completionQueue(queue) {
      around(queue, 'getResults', (getResults) => (into, max) => {
        const n = getResults(into, max);
        for (let i = 0; i < n; i += 1) change(into[i]!);
        return n;
      });
    },
  });
}

export const queueMutants: readonly Mutant[] = [
  mutantV1('out-of-order', 'Results returned together are in reverse order', 'queue.flush-never-connected', {
    completionQueue(queue) {
      around(queue, 'getResults', (getResults) => (into, max) => {
        const n = getResults(into, max);
        into.splice(0, n, ...into.slice(0, n).reverse());
        return n;
      });
    },
  }),
  mutantV1('lose-results', 'Every fifth result is lost', 'queue.flush-never-connected', {
    completionQueue(queue) {
      let count = 0;
      around(queue, 'getResults', (getResults) => (into, max) => {
        const n = getResults(into, max);
        const kept = into.slice(0, n).filter(() => {
          count += 1;
          return count % 5 !== 0;
        });
        into.splice(0, n, ...kept);
        return kept.length;
      });
    },
  }),
  mutantV1('twice', 'The last result of an endpoint is returned twice', 'queue.flush-connected', {
    completionQueue(queue) {
      let last: NdResult | undefined;
      around(queue, 'getResults', (getResults) => (into, max) => {
        const n = getResults(into, max);
        if (n > 0) {
          last = into[n - 1];
        } else if (last !== undefined && max !== 0) {
          into[0] = last;
          last = undefined;
          return 1;
        }
        return n;
      });
    },
  }),
  mutantV1('copies', 'Results are copies of the objects that were passed', 'adapter.result-identity', {
    completionQueue(queue) {
      around(queue, 'getResults', (getResults) => (into, max) => {
        const n = getResults(into, max);
        for (let i = 0; i < n; i += 1) into[i] = { ...into[i]! };
        return n;
      });
    },
  }),
  mutantV1('too-many-results', 'GetResults ignores the requested maximum', 'cq.get-results-max', {
    completionQueue(queue) {
      around(
        queue,
        'getResults',
        (getResults) => (into, max) => getResults(into, max === undefined ? max : max + 2),
      );
    },
  }),
  results(
    'no-lengths',
    'The length of received messages is not reported',
    'transfer.send-lengths',
    (result) => {
      result.bytesTransferred = 0;
    },
  ),
  results('flushed-is-fine', 'Cancelled requests succeed', 'queue.flush-never-connected', (result) => {
    if (result.status === Status.CANCELED) result.status = Status.SUCCESS;
  }),
  results(
    'v2-terms',
    "A refusal by the peer is reported with the other version's status",
    'memory.made-up-token-*',
    (result) => {
      if (result.status === Status.REMOTE_ERROR) result.status = Status.ACCESS_VIOLATION;
    },
  ),
  results('overrun-is-fine', 'A truncated message succeeds', 'transfer.receive-too-short', (result) => {
    if (result.status === Status.DATA_OVERRUN) result.status = Status.SUCCESS;
  }),
  results('timeout-is-cancel', 'A Send without a Receive is cancelled', 'transfer.no-receive', (result) => {
    if (result.status === Status.TIMEOUT) result.status = Status.CANCELED;
  }),
  results('no-context', 'Contexts of failed requests are lost', 'queue.flush-never-connected', (result) => {
    if (result.status !== Status.SUCCESS) result.context = undefined;
  }),
  mutantV1('deaf', 'Notify never announces a completion', 'cq.notify-any', {
    completionQueue(queue) {
      around(queue, 'notify', (notify) => (type) => notify(type === 'any' ? 'errors' : type));
    },
  }),
  mutantV1('lost-wake-up', 'Completions before Notify are not announced', 'cq.notify-missed-nothing', {
    completionQueue(queue) {
      const seen: NdResult[] = [];
      around(queue, 'getResults', (getResults) => {
        around(queue, 'notify', (notify) => (type) => {
          const some: NdResult[] = [];
          while (getResults(some, 1) === 1) seen.push(some[0]!);
          return notify(type);
        });
        return (into, max = Math.max(into.length, 1)) => {
          const n = Math.min(seen.length, max);
          into.splice(0, n, ...seen.splice(0, n));
          if (n === max) return n;
          const more: NdResult[] = [];
          const m = getResults(more, max - n);
          for (let i = 0; i < m; i += 1) into[n + i] = more[i]!;
          return n + m;
        };
      });
    },
  }),
  mutantV1(
    'only-one-waiter',
    'Only the first of several Notify requests completes',
    'cq.notify-all-together',
    {
      completionQueue(queue, adapter) {
        let waiting: Overlapped<void> | undefined;
        around(queue, 'notify', (notify) => (type) => {
          if (waiting !== undefined && !waiting.completed) return never(adapter);
          waiting = notify(type);
          return waiting;
        });
      },
    },
  ),
  mutantV1('all-solicited', 'SOLICITED ends with any completion', 'cq.notify-solicited', {
    completionQueue(queue) {
      around(queue, 'notify', (notify) => (type) => notify(type === 'solicited' ? 'any' : type));
    },
  }),
  mutantV1('errors-of-requests', 'ERRORS ends with a failed request', 'cq.notify-errors', {
    completionQueue(queue) {
      around(queue, 'notify', (notify) => (type) => notify(type === 'errors' ? 'solicited' : type));
    },
  }),
  mutantV1('tells-again', 'Notify ends at once for completions announced before', 'cq.notify-not-twice', {
    completionQueue(queue, adapter) {
      around(queue, 'notify', (notify) => (type) => {
        if (type !== 'any') return notify(type);
        const done = adapter.registerMemory(new Uint8Array(1));
        done.getResult({ wait: true });
        return done.map(() => undefined);
      });
    },
  }),
  mutantV1(
    'cancel-later',
    'Cancelled requests are outstanding when Cancel has returned',
    'cq.notify-cancel',
    {
      completionQueue(queue) {
        around(queue, 'cancelOverlappedRequests', (cancel) => () => {
          setImmediate(() => {
            try {
              cancel();
            } catch {
              // The queue has been released in the meantime.
            }
          });
        });
      },
    },
  ),
  mutantV1(
    'release-without-cancel',
    'Releasing a completion queue leaves Notify waiting',
    'cq.notify-release',
    {
      completionQueue(queue) {
        queue.release = () => 0;
      },
    },
  ),
  mutantV1('resize-anything', 'Resize below the waiting completions succeeds', 'cq.resize-below-content', {
    completionQueue(queue) {
      around(queue, 'resize', (resize) => (entries) => {
        insteadOf(
          Status.BUFFER_OVERFLOW,
          () => resize(entries),
          () => {},
        );
      });
    },
  }),
  mutantV1('resize-to-limit', 'Resize beyond the limit is cut to it', 'cq.resize-limits', {
    completionQueue(queue, adapter) {
      const { maxCqEntries } = adapter.query();
      around(queue, 'resize', (resize) => (entries) => resize(Math.min(entries, maxCqEntries)));
    },
  }),
  mutantV1('fewer-entries', 'A completion queue has fewer entries than requested', 'cq.entries-limits', {
    adapter(adapter) {
      around(
        adapter,
        'createCompletionQueue',
        (create) => (entries) => create(entries > 64 ? Math.floor(entries / 4) : entries),
      );
    },
  }),
];
