// A raw socket that receives RoCEv2's IPv4 datagrams with their headers, as they are sent or received on this host.
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include "host_test.h"
#include "udp/udp_wire.h"

namespace nd {

// Receives whole IPv4 datagrams.
struct Raw {
  UniqueFd fd{socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP)};
  uint8_t bytes[65536];
  // Returns the length of the next datagram to port 4791 that is not empty; 0: none arrived. The OS may be behind with
  // datagrams that have already been sent.
  uint32_t next(int timeoutMs = 0) {
    for (pollfd waited = {fd.get(), POLLIN, 0};;) {
      const ssize_t n = poll(&waited, 1, timeoutMs) == 1 ? recv(fd.get(), bytes, sizeof bytes, 0) : -1;
      if (n < 0) return 0;
      if (n > 28 && (bytes[22] << 8 | bytes[23]) == kRocePort) return static_cast<uint32_t>(n);
    }
  }
  uint16_t id() const { return static_cast<uint16_t>(bytes[4] << 8 | bytes[5]); }
  uint16_t port() const { return static_cast<uint16_t>(bytes[20] << 8 | bytes[21]); }
  // Creates a datagram of one packet with these fields and a valid ICRC.
  bool sees(const IcrcHeaders& headers) {
    const uint32_t n = next(kTimeoutMs);
    return n != 0 && id() == headers.ipv4Id && port() == headers.sourcePort &&
           icrcOfPacket(bytes, n) == loadIcrc(bytes + n - kIcrcBytes);
  }
  bool seesNothing() { return next() == 0; }
};

}  // namespace nd
