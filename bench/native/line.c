/* The lower bound of all messages through shared memory: one cache line that moves between two cores. Half a round trip in µs.
 *
 *   line [--count N] [--cpus A,B] [--no-pin] */
#include "bench.h"

enum { kBatch = 64 };

int main(int argc, char** argv) {
  const struct options o = parse(argc, argv, 8, 10000);
  _Atomic uint64_t* there = shared(4096);
  _Atomic uint64_t* back = there + 64;
  double* samples = calloc((size_t)o.count, sizeof *samples);
  if (samples == NULL) die("calloc");
  const pid_t pid = second(&o);
  uint64_t n = 0;
  if (pid == 0) {
    for (;;) {
      while (atomic_load_explicit(there, memory_order_acquire) == n) pause1();
      atomic_store_explicit(back, ++n, memory_order_release);
    }
  }
  for (long i = -o.count / 10; i < o.count; i++) {
    const double start = nowUs();
    for (int k = 0; k < kBatch; k++) {
      atomic_store_explicit(there, ++n, memory_order_release);
      while (atomic_load_explicit(back, memory_order_acquire) != n) pause1();
    }
    if (i >= 0) samples[i] = (nowUs() - start) / 2 / kBatch;
  }
  finish(pid);
  reportLatency("cache line", samples, o.count);
  return 0;
}
