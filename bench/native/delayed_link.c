/* A link with delay, a rate, a queue and loss between two network namespaces, for the rows "distance": kernels without
 * netem cannot delay packets.
 *
 *   link NAMESPACE_A NAMESPACE_B --delay US [--rate MBIT] [--loss PPM] [--queue PACKETS] [--seed N]
 *
 * Creates a TAP interface `far0` in each namespace and prints `up`; addresses and MTU are set from outside. It ends with its parent,
 * and the interfaces with it. Each direction has its own thread and the same values:
 * --delay  of each packet, after it has passed the queue; --rate  0: none; --loss  of a million packets, chosen by a seeded generator;
 * --queue  maximum number of packets that wait or are in flight; further packets are lost. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kMostBytes = 9100, kBatch = 32, kHeldMost = 32768 };

static uint64_t delayNs = 0, bitsPerUs = 0, lossPpm = 0, queuePackets = 1000;

struct packet {
  uint64_t due;  // when it is sent
  uint64_t served;  // when the rate limit releases it; until then it is in the queue
  uint32_t length;
  uint8_t bytes[kMostBytes];
};

struct way {
  int from, to;
  uint64_t random, freeAt;
  uint32_t first, waiting, count;  // in the ring `packets`: in flight from `first`, queued from `waiting`
  struct packet* packets;
};

static void die(const char* what) {
  fprintf(stderr, "link: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t nowNs(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int openInterface(const char* name) {
  char path[300];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  const int space = open(path, O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) die(path);
  close(space);
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) die("/dev/net/tun");
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "far0");
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(fd, TUNSETIFF, &request) != 0) die("TUNSETIFF");
  return fd;
}

static int isLost(struct way* way) {
  way->random = way->random * 6364136223846793005u + 1442695040888963407u;
  return (way->random >> 33) % 1000000 < lossPpm;
}

// Reads arrived packets. Returns true if there may be more.
static int take(struct way* way, uint64_t now) {
  for (int i = 0; i < kBatch; i++) {
    struct packet* packet = &way->packets[(way->first + way->count) % kHeldMost];
    const ssize_t length = read(way->from, packet->bytes, kMostBytes);
    if (length <= 0) return 0;
    while (way->waiting != way->first + way->count && way->packets[way->waiting % kHeldMost].served <= now) way->waiting++;
    const uint32_t queued = way->first + way->count - way->waiting;
    if (isLost(way) || way->count + 1 == kHeldMost || queued >= queuePackets) continue;
    const uint64_t start = way->freeAt > now ? way->freeAt : now;
    way->freeAt = start + (bitsPerUs == 0 ? 0 : (uint64_t)length * 8 * 1000 / bitsPerUs);
    packet->length = (uint32_t)length;
    packet->served = way->freeAt;
    packet->due = way->freeAt + delayNs;
    way->count++;
  }
  return 1;
}

// Sends packets that are due. Returns true if it sent any.
static int give(struct way* way, uint64_t now) {
  int any = 0;
  for (; way->count != 0 && way->packets[way->first % kHeldMost].due <= now; way->first++, way->count--, any = 1) {
    const struct packet* packet = &way->packets[way->first % kHeldMost];
    if (write(way->to, packet->bytes, packet->length) < 0 && errno != EAGAIN && errno != EIO) die("write");
  }
  if ((int32_t)(way->waiting - way->first) < 0) way->waiting = way->first;
  return any;
}

static void* carry(void* argument) {
  struct way* const way = argument;
  for (;;) {
    const uint64_t now = nowNs();
    const int more = take(way, now);
    if (give(way, now) | more) continue;
    struct pollfd readable = {way->from, POLLIN, 0};
    struct timespec wait = {1, 0};
    if (way->count != 0) {
      const uint64_t due = way->packets[way->first % kHeldMost].due, left = due > now ? due - now : 0;
      wait.tv_sec = (time_t)(left / 1000000000u);
      wait.tv_nsec = (long)(left % 1000000000u);
    }
    ppoll(&readable, 1, &wait, NULL);
  }
  return NULL;
}

static uint64_t number(const char* text) {
  char* end;
  errno = 0;
  const uint64_t value = strtoull(text, &end, 10);
  if (errno == 0 && *text != '\0' && *end == '\0') return value;
  fprintf(stderr, "link: expected a number; got %s.\n", text);
  exit(2);
}

int main(int count, char** arguments) {
  uint64_t seed = 1;
  if (count < 3) {
    fprintf(stderr, "link NAMESPACE_A NAMESPACE_B --delay US [--rate MBIT] [--loss PPM] [--queue PACKETS] [--seed N]\n");
    return 2;
  }
  for (int i = 3; i + 1 < count; i += 2) {
    const uint64_t value = number(arguments[i + 1]);
    if (strcmp(arguments[i], "--delay") == 0) delayNs = value * 1000;
    else if (strcmp(arguments[i], "--rate") == 0) bitsPerUs = value;
    else if (strcmp(arguments[i], "--loss") == 0) lossPpm = value;
    else if (strcmp(arguments[i], "--queue") == 0) queuePackets = value;
    else if (strcmp(arguments[i], "--seed") == 0) seed = value;
    else {
      fprintf(stderr, "link: unknown option %s.\n", arguments[i]);
      return 2;
    }
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int a = openInterface(arguments[1]), b = openInterface(arguments[2]);
  struct way ways[2] = {{a, b, seed, 0, 0, 0, 0, NULL}, {b, a, seed + 7, 0, 0, 0, 0, NULL}};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    ways[i].packets = malloc(kHeldMost * sizeof(struct packet));  // pages are allocated on first use
    if (ways[i].packets == NULL || pthread_create(&threads[i], NULL, carry, &ways[i]) != 0) die("a thread");
  }
  puts("up");
  fflush(stdout);
  pthread_join(threads[0], NULL);
  return 0;
}
