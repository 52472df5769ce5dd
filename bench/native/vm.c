/* A copy between two processes by the kernel: repeated process_vm_writev or process_vm_readv of one buffer.
 * `median` and `mean` are bytes per second, or with a pause before each copy its time in µs.
 *
 *   vm writev|readv [--bytes N] [--count N] [--pause US] [--cpus A,B] [--no-pin] */
#include "bench.h"
#include <sys/uio.h>

int main(int argc, char** argv) {
  const struct options o = parse(argc, argv, 1 << 20, 2000);
  const int writes = strcmp(o.mode, "writev") == 0;
  if (!writes && strcmp(o.mode, "readv") != 0) {
    fprintf(stderr, "%s: the mode is '%s'; it is writev or readv\n", argv[0], o.mode);
    return 2;
  }
  const size_t bytes = (size_t)o.bytes;
  _Atomic int* ready = shared(4096);
  /* Each process writes its buffer, so that copy on write happens before the measurement. */
  char* buffer = private1(bytes);
  double* samples = calloc((size_t)o.count, sizeof *samples);
  if (samples == NULL) die("calloc");
  const pid_t pid = second(&o);
  if (pid == 0) {
    /* The target is the child process, because Yama may restrict tracing to descendants. */
    memset(buffer, 2, bytes);
    atomic_store(ready, 1);
    for (;;) pause();
  }
  memset(buffer, 3, bytes);
  while (atomic_load(ready) == 0) pause1();
  const struct iovec local = {buffer, bytes}, remote = {buffer, bytes};
  for (long i = -o.count / 10; i < o.count; i++) {
    for (const double until = nowUs() + (double)o.pause; o.pause > 0 && nowUs() < until;);
    const double start = nowUs();
    const ssize_t n = writes ? process_vm_writev(pid, &local, 1, &remote, 1, 0)
                             : process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (n != (ssize_t)bytes) die("process_vm");
    if (i >= 0) samples[i] = nowUs() - start;
  }
  finish(pid);
  const char* const what = writes ? "process_vm_writev" : "process_vm_readv";
  if (o.pause > 0)
    reportLatency(what, samples, o.count);
  else
    reportBandwidth(what, samples, o.count, (double)bytes);
  return 0;
}
