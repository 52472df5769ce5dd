/* A copy between two processes by memcpy. The second process fills a shared buffer; the first copies it to private memory and returns
 * the buffer. Only the copies are timed, so the bytes come from the other core's cache. `median`, `mean`: bytes per second. In mode
 * `same` the second process does not touch the buffer, so its bytes stay in this core's cache as far as they fit.
 *
 *   copy [other|same] [--bytes N] [--count N] [--cpus A,B] [--no-pin] */
#include "bench.h"

int main(int argc, char** argv) {
  const struct options o = parse(argc, argv, 1 << 20, 2000);
  const int other = strcmp(o.mode, "same") != 0;
  const size_t bytes = (size_t)o.bytes;
  _Atomic long* turn = shared(4096);
  char* from = shared(bytes);
  char* to = private1(bytes);
  double* samples = calloc((size_t)o.count, sizeof *samples);
  if (samples == NULL) die("calloc");
  memset(from, 1, bytes);
  const pid_t pid = second(&o);
  if (pid == 0) {
    for (long n = 1;; n += 2) {
      while (atomic_load_explicit(turn, memory_order_acquire) != n) pause1();
      memset(from, (int)n, bytes);
      atomic_store_explicit(turn, n + 1, memory_order_release);
    }
  }
  long n = 0;
  for (long i = -o.count / 10; i < o.count; i++) {
    if (other) {
      atomic_store_explicit(turn, n + 1, memory_order_release);
      n += 2;
      while (atomic_load_explicit(turn, memory_order_acquire) != n) pause1();
    }
    const double start = nowUs();
    memcpy(to, from, bytes);
    __asm__ volatile("" : : "r"(to) : "memory");
    if (i >= 0) samples[i] = nowUs() - start;
  }
  finish(pid);
  reportBandwidth(other ? "memcpy, other core" : "memcpy, own core", samples, o.count, (double)bytes);
  return 0;
}
