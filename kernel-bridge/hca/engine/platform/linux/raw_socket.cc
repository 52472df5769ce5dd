#include "platform/raw_socket.h"

#include <linux/filter.h>
#include <net/if.h>

#include <cerrno>
#include <vector>

#include "base/icrc.h"
#include "base/packet_headers.h"
#include "platform/linux/socket_options.h"

namespace nd {
namespace {

constexpr uint32_t kQpnWordAt = wire::kBthQpnAt - 1, kSlotAt = wire::kBthQpnAt;
constexpr uint32_t kTake = 0xffffffff, kDrop = 0;
constexpr uint32_t kInterface = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX);

sock_filter step(uint16_t code, uint32_t k) { return sock_filter{code, 0, 0, k}; }
sock_filter jump(uint16_t kind, uint32_t k, uint8_t onTrue, uint8_t onFalse) {
  return sock_filter{static_cast<uint16_t>(BPF_JMP | kind | BPF_K), onTrue, onFalse, k};
}

int attach(int fd, std::vector<sock_filter>& program) {
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0 ? 0 : errno;
}

}  // namespace

int openRawSocket(uint32_t receiveBufferBytes, UniqueFd* raw) {
  UniqueFd fd(socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd.valid()) return errno;
  std::vector<sock_filter> nothing = {step(BPF_RET | BPF_K, kDrop)};
  if (const int error = attach(fd.get(), nothing)) return error;
  setReceiveBuffer(fd.get(), receiveBufferBytes);
  *raw = std::move(fd);
  return 0;
}

int divideRoce(Descriptor raw, Descriptor udp, uint32_t slot) {
  const uint32_t loopback = if_nametoindex("lo");
  // The UDP socket's filter sees the UDP header first.
  std::vector<sock_filter> forUdp = {
      step(BPF_LD | BPF_W | BPF_ABS, kInterface),
      jump(BPF_JEQ, loopback, 0, 2),
      step(BPF_LD | BPF_B | BPF_ABS, kUdpBytes),
      jump(BPF_JSET, wire::kTransportBits, 6, 0),
      step(BPF_LD | BPF_W | BPF_ABS, kUdpBytes + kQpnWordAt),
      step(BPF_ALU | BPF_AND | BPF_K, wire::kQpnMask),
      jump(BPF_JGT, wire::kGsiQpn, 0, 3),
      step(BPF_LD | BPF_B | BPF_ABS, kUdpBytes + kSlotAt),
      jump(BPF_JEQ, slot, 0, 1),
      step(BPF_RET | BPF_K, kDrop),
      step(BPF_RET | BPF_K, kTake),
  };
  // The raw socket's filter sees the IP header first.
  std::vector<sock_filter> forRaw = {
      step(BPF_LDX | BPF_B | BPF_MSH, 0),  // X: bytes of the IP header
      step(BPF_LD | BPF_H | BPF_IND, 2),
      jump(BPF_JEQ, kRocePort, 0, 11),
      step(BPF_LD | BPF_W | BPF_ABS, kInterface),
      jump(BPF_JEQ, loopback, 0, 2),
      step(BPF_LD | BPF_B | BPF_IND, kUdpBytes),
      jump(BPF_JSET, wire::kTransportBits, 7, 0),
      step(BPF_LD | BPF_B | BPF_IND, kUdpBytes + kSlotAt),
      jump(BPF_JEQ, slot, 4, 0),
      step(BPF_LD | BPF_W | BPF_IND, kUdpBytes + kQpnWordAt),
      step(BPF_ALU | BPF_AND | BPF_K, wire::kQpnMask),
      jump(BPF_JEQ, wire::kMulticastQpn, 1, 0),
      jump(BPF_JGT, wire::kGsiQpn, 1, 0),
      step(BPF_RET | BPF_K, kTake),
      step(BPF_RET | BPF_K, kDrop),
  };
  // First the copies begin, and then the old path ends. A packet in between is received twice, which transports
  // tolerate.
  if (const int error = attach(raw, forRaw)) return error;
  return attach(udp, forUdp);
}

}  // namespace nd
