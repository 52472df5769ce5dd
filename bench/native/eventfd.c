/* The time of a wake-up: two processes, each blocked in read() of an eventfd until the other writes it. Each pauses between its wake-up
 * and its write. Half a round trip in µs, without the pauses.
 *
 *   eventfd [--count N] [--pause US] [--cpus A,B] [--no-pin] */
#include "bench.h"
#include <sys/eventfd.h>

static void wake(int fd) {
  const uint64_t one = 1;
  if (write(fd, &one, sizeof one) != sizeof one) die("write");
}

static void await(int fd) {
  uint64_t n;
  if (read(fd, &n, sizeof n) != sizeof n) die("read");
}

static void spin(long us) {
  const double end = nowUs() + (double)us;
  while (us > 0 && nowUs() < end) pause1();
}

int main(int argc, char** argv) {
  const struct options o = parse(argc, argv, 8, 20000);
  const int there = eventfd(0, EFD_CLOEXEC), back = eventfd(0, EFD_CLOEXEC);
  double* samples = calloc((size_t)o.count, sizeof *samples);
  if (there < 0 || back < 0 || samples == NULL) die("eventfd");
  const pid_t pid = second(&o);
  if (pid == 0) {
    for (;;) {
      await(there);
      spin(o.pause);
      wake(back);
    }
  }
  for (long i = -o.count / 10; i < o.count; i++) {
    spin(o.pause);
    const double start = nowUs();
    wake(there);
    await(back);
    if (i >= 0) samples[i] = (nowUs() - start - (double)o.pause) / 2;
  }
  finish(pid);
  reportLatency("eventfd", samples, o.count);
  return 0;
}
