// A point-to-point link between two network namespaces: a TUN interface in each, where the packets sent to one are
// received on the other.
//
//   tun-relay NETWORK NETWORK NAME    (files of the namespaces; the interface's name in both)
//
// Prints "up" when the interfaces exist. An input line "N" drops packets of more than N bytes from then on (0: none),
// as on a path whose routers do not report dropped packets; it replies with the same line. It exits with its input.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

static int fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

static int openTun(const char* network, const char* name) {
  const int ns = open(network, O_RDONLY | O_CLOEXEC);
  if (ns < 0 || setns(ns, CLONE_NEWNET) != 0) return fail(network);
  close(ns);
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (tun < 0 || ioctl(tun, TUNSETIFF, &request) != 0) return fail("/dev/net/tun");
  return tun;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const int ends[2] = {openTun(words[1], words[3]), openTun(words[2], words[3])};
  std::puts("up");
  std::fflush(stdout);
  long most = 0;
  static char packet[65536];
  pollfd waited[3] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}, {0, POLLIN, 0}};
  for (;;) {
    if (poll(waited, 3, -1) < 0) return fail("poll");
    for (int i = 0; i < 2; i++) {
      for (int n = 0; n < 64; n++) {
        const ssize_t bytes = read(ends[i], packet, sizeof packet);
        if (bytes <= 0) break;
        if (most != 0 && bytes > most) continue;
        if (write(ends[1 - i], packet, static_cast<size_t>(bytes)) < 0) continue;  // the other end is down: lost
      }
    }
    if (waited[2].revents == 0) continue;
    char line[32];
    const ssize_t bytes = read(0, line, sizeof line - 1);
    if (bytes <= 0) return 0;
    line[bytes] = 0;
    most = std::atol(line);
    std::printf("%ld\n", most);
    std::fflush(stdout);
  }
}
