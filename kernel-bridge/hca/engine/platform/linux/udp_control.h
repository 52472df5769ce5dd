// Control messages of datagrams, and constants that are absent from some libc headers: Linux ≥ 3.16, 4.20, 4.18
// and 5.0.
#pragma once
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstring>

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace nd {

// The message must have enough room.
template <typename T>
void appendControl(msghdr* message, int level, int type, const T& value) {
  auto* header = reinterpret_cast<cmsghdr*>(static_cast<uint8_t*>(message->msg_control) + message->msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(T));
  std::memcpy(CMSG_DATA(header), &value, sizeof(T));
  message->msg_controllen += CMSG_SPACE(sizeof(T));
}

template <typename T>
T controlValue(const cmsghdr* header) {
  T value;
  std::memcpy(&value, CMSG_DATA(header), sizeof value);
  return value;
}

}  // namespace nd
