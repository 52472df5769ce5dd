/* The operating system's UDP between two processes on this host: the baseline for the wire.
 *
 *   cc -O2 -Wall -Wextra -o udp udp.c
 *   udp pingpong [--bytes N] [--count N] [--cpus A,B] [--no-pin]
 *   udp stream   [--bytes N] [--segment N] [--window N] [--count N] [--cpus A,B] [--no-pin]
 *
 * pingpong  Both sides spin on a non-blocking receive. `median`, `p99`: half a round trip in µs.
 * stream    One side sends with UDP_SEGMENT, the other receives with UDP_GRO. `bandwidth`: bytes per second.
 *           --bytes: bytes of one send call (at most 65000). --segment: payload of a packet, or 0 without GSO and GRO.
 *           --window: limit of bytes in flight.
 * Both over IPv4 loopback, each process on its own CPU. Prints one line of JSON. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { kWarmup = 1000, kMaxBytes = 65000, kBufferBytes = 4 << 20 };

static struct {
  const char* mode;
  long bytes, segment, window, count;
  int cpus[2];
  int pin;
} options = {NULL, -1, 4112, 512 << 10, -1, {0, 1}, 1};

static void die(const char* what) {
  fprintf(stderr, "udp: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void pin(int side) {
  if (!options.pin) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(options.cpus[side], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

static int bound(struct sockaddr_in* address) {
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), size = kBufferBytes;
  socklen_t length = sizeof *address;
  memset(address, 0, sizeof *address);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (s < 0 || bind(s, (struct sockaddr*)address, length) != 0 ||
      getsockname(s, (struct sockaddr*)address, &length) != 0)
    die("socket");
  setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  return s;
}

/* ECONNREFUSED: the other side has finished and exited. */
static void take(int s, char* bytes, size_t length) {
  while (recv(s, bytes, length, MSG_DONTWAIT) < 0) {
    if (errno == ECONNREFUSED) exit(0);
    if (errno != EAGAIN && errno != EINTR) die("recv");
  }
}

static void give(int s, const char* bytes, size_t length) {
  while (send(s, bytes, length, MSG_DONTWAIT) < 0)
    if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR && errno != ECONNREFUSED) die("send");
}

static int byValue(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void pingpong(int s, int first) {
  static char bytes[kMaxBytes];
  double* samples = calloc((size_t)options.count, sizeof *samples);
  if (samples == NULL) die("calloc");
  for (long i = -kWarmup; i < options.count; i++) {
    const double start = now();
    if (first) give(s, bytes, (size_t)options.bytes);
    take(s, bytes, sizeof bytes);
    if (!first) give(s, bytes, (size_t)options.bytes);
    if (i >= 0) samples[i] = (now() - start) / 2;
  }
  if (!first) exit(0);
  qsort(samples, (size_t)options.count, sizeof *samples, byValue);
  printf("{\"what\":\"udp pingpong\",\"bytes\":%ld,\"count\":%ld,\"median\":%.3f,\"p99\":%.3f}\n", options.bytes,
         options.count, samples[options.count / 2], samples[options.count * 99 / 100]);
}

/*
 * The receiver reports the number of received send calls, and the sender keeps at most a window of them in flight, so that nothing is lost.
 */
static void sendStream(int s) {
  static char bytes[kMaxBytes];
  const int segment = (int)options.segment;
  const long window = options.window / options.bytes > 1 ? options.window / options.bytes : 1;
  long taken = 0;
  if (segment != 0 && setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0) die("UDP_SEGMENT");
  for (long sent = 0; sent < options.count; sent++) {
    while (sent - taken >= window) take(s, (char*)&taken, sizeof taken);
    give(s, bytes, (size_t)options.bytes);
  }
}

static void receiveStream(int s) {
  static char bytes[kMaxBytes];
  const int one = 1;
  const long every = options.window / options.bytes / 4;
  if (options.segment != 0 && setsockopt(s, IPPROTO_UDP, UDP_GRO, &one, sizeof one) != 0) die("UDP_GRO");
  take(s, bytes, sizeof bytes);
  const double start = now();
  double received = 0;
  const double all = (double)options.bytes * (double)(options.count - 1);
  for (long calls = 1, reported = 0; received < all;) {
    const ssize_t n = recv(s, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) die("recv");
    if (n < 0) continue;
    received += (double)n;
    calls = 1 + (long)(received / (double)options.bytes);
    if (calls - reported <= every) continue;
    reported = calls;
    give(s, (const char*)&reported, sizeof reported);
  }
  printf("{\"what\":\"udp stream\",\"bytes\":%ld,\"segment\":%ld,\"window\":%ld,\"count\":%ld,\"bandwidth\":%.0f}\n",
         options.bytes, options.segment, options.window, options.count, received / (now() - start) * 1e6);
}

static void parse(int argc, char** argv) {
  options.mode = argc > 1 ? argv[1] : "";
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--no-pin") == 0) {
      options.pin = 0;
      continue;
    }
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--bytes") == 0) options.bytes = atol(value);
    else if (strcmp(argv[i], "--segment") == 0) options.segment = atol(value);
    else if (strcmp(argv[i], "--window") == 0) options.window = atol(value);
    else if (strcmp(argv[i], "--count") == 0) options.count = atol(value);
    else if (strcmp(argv[i], "--cpus") != 0 || sscanf(value, "%d,%d", &options.cpus[0], &options.cpus[1]) != 2)
      options.mode = "";
    i++;
  }
  const int stream = strcmp(options.mode, "stream") == 0;
  if (options.bytes < 0) options.bytes = stream ? 15 * options.segment : 8;
  if (options.count < 0) options.count = stream ? 50000 : 100000;
  if ((!stream && strcmp(options.mode, "pingpong") != 0) || options.bytes < (stream ? 2 : 1) ||
      options.bytes > kMaxBytes || options.count < 2 || options.segment < 0) {
    fprintf(stderr, "usage: udp pingpong|stream [--bytes N] [--segment N] [--window N] [--count N] [--cpus A,B] "
                    "[--no-pin]\n");
    exit(2);
  }
}

int main(int argc, char** argv) {
  parse(argc, argv);
  struct sockaddr_in addresses[2];
  const int sockets[2] = {bound(&addresses[0]), bound(&addresses[1])};
  for (int i = 0; i < 2; i++)
    if (connect(sockets[i], (struct sockaddr*)&addresses[1 - i], sizeof addresses[0]) != 0) die("connect");
  const pid_t child = fork();
  if (child < 0) die("fork");
  const int side = child == 0;
  close(sockets[1 - side]);
  pin(side);
  if (strcmp(options.mode, "pingpong") == 0) {
    pingpong(sockets[side], side == 0);
  } else if (side == 1) {
    sendStream(sockets[side]);
  } else {
    receiveStream(sockets[side]);
  }
  waitpid(child, NULL, 0);
  return 0;
}
