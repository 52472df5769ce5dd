/* Code shared by all baselines: command line, clock, two processes on a CPU each, and the report as one line of JSON.
 */
#ifndef BENCH_H
#define BENCH_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <signal.h>
#ifndef __cplusplus
#include <stdatomic.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options {
  const char* mode;
  long bytes, count, pause; /* pause: µs */
  int cpus[2], pin;
};

__attribute__((unused)) static void die(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

/* PROGRAM [MODE] [--bytes N] [--count N] [--pause US] [--cpus A,B] [--no-pin] */
static struct options parse(int argc, char** argv, long bytes, long count) {
  struct options o = {"", bytes, count, 0, {0, 1}, 1};
  for (int i = 1; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    int good = 1;
    if (strcmp(argv[i], "--no-pin") == 0) {
      o.pin = 0;
    } else if (argv[i][0] != '-' && i == 1) {
      o.mode = argv[i];
    } else {
      if (strcmp(argv[i], "--bytes") == 0) {
        good = sscanf(value, "%ld", &o.bytes) == 1 && o.bytes > 0;
      } else if (strcmp(argv[i], "--count") == 0) {
        good = sscanf(value, "%ld", &o.count) == 1 && o.count > 0;
      } else if (strcmp(argv[i], "--pause") == 0) {
        good = sscanf(value, "%ld", &o.pause) == 1 && o.pause >= 0;
      } else if (strcmp(argv[i], "--cpus") == 0) {
        good = sscanf(value, "%d,%d", &o.cpus[0], &o.cpus[1]) == 2 && o.cpus[0] >= 0 && o.cpus[1] >= 0;
      } else {
        good = 0;
      }
      i++;
    }
    if (!good) {
      fprintf(stderr, "%s: bad argument '%s'; it takes --bytes N, --count N, --pause US, --cpus A,B and --no-pin\n",
              argv[0], argv[i < argc ? i : argc - 1]);
      exit(2);
    }
  }
  return o;
}

static inline double nowUs(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline void pause1(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void pinTo(const struct options* o, int side) {
  cpu_set_t set;
  if (!o->pin) return;
  CPU_ZERO(&set);
  CPU_SET(o->cpus[side], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

/* Forks the second process, which runs on the second CPU and ends with the first. Returns as fork() does. */
static inline pid_t second(const struct options* o) {
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) exit(1);
  }
  pinTo(o, pid == 0 ? 1 : 0);
  return pid;
}

static inline void finish(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

/* Memory shared by both processes, with all pages allocated. */
static inline void* shared(size_t bytes) {
  void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) die("mmap");
  return p;
}

/* Memory of this process only, with all pages allocated. */
static inline void* private1(size_t bytes) {
  void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) die("mmap");
  memset(p, 1, bytes);
  return p;
}

static int byValue(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* `samples`: times in µs, each the mean of a few rounds. */
static inline void reportLatency(const char* what, double* samples, long n) {
  double sum = 0;
  for (long i = 0; i < n; i++) sum += samples[i];
  qsort(samples, (size_t)n, sizeof *samples, byValue);
  printf("{\"what\":\"%s\",\"median\":%.4f,\"mean\":%.4f,\"p99\":%.4f}\n", what, samples[n / 2], sum / (double)n,
         samples[n * 99 / 100]);
}

/* `samples`: times in µs, each for `bytes` bytes. */
static inline void reportBandwidth(const char* what, double* samples, long n, double bytes) {
  double sum = 0;
  for (long i = 0; i < n; i++) sum += samples[i];
  qsort(samples, (size_t)n, sizeof *samples, byValue);
  printf("{\"what\":\"%s\",\"median\":%.0f,\"mean\":%.0f}\n", what, bytes / samples[n / 2] * 1e6,
         bytes * (double)n / sum * 1e6);
}

#endif
