// Checks and a private network namespace for the tests of the host side. UDP port 4791 and abstract socket names belong
// to the host, so each test binary uses its own network if that is permitted.
#pragma once
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// After this time nothing more will arrive. A busy machine may take many seconds.
constexpr int kTimeoutMs = 60'000;
constexpr uint64_t kTimeoutNs = kTimeoutMs * 1'000'000ull;

namespace hosttest {

inline std::atomic<int> failures{0}, checks{0};

inline void report(bool ok, const char* what, const char* file, int line) {
  checks++;
  if (ok) return;
  failures++;
  std::fprintf(stderr, "%s:%d: FAILED: %s\n", file, line, what);
}

#define HOST_CHECK(condition) hosttest::report((condition), #condition, __FILE__, __LINE__)

inline int finish(const char* name) {
  std::printf("%s: %d checks, %d failed\n", name, checks.load(), failures.load());
  return failures == 0 ? 0 : 1;
}

inline bool privateNetwork() {
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    std::printf("no private network namespace here: using the host's own port 4791\n");
    return false;
  }
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  ioctl(s, SIOCGIFFLAGS, &request);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  const bool up = ioctl(s, SIOCSIFFLAGS, &request) == 0;
  close(s);
  return up;
}

inline std::vector<uint8_t> fromHex(const std::string& hex) {
  std::vector<uint8_t> out;
  int high = -1;
  for (char c : hex) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      out.push_back(static_cast<uint8_t>(high << 4 | digit));
      high = -1;
    }
  }
  return out;
}

}  // namespace hosttest
