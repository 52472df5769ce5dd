// Sends the packets of one address family over UDP: through a connected socket per flow (udp_flow.h) or the one on port
// 4791, in batches; or a single small packet at once. Caches facts about its last packets. Called by Host::send(),
// sendSingle() and flush(), and by the tap for packets that it lets pass; with the engine's lock held.
#pragma once
#include "host/host_parts.h"
#include "udp/steering.h"

namespace nd {

// Length of a packet from its BTH to its last pad byte, 0 if it may not be sent.
uint32_t checkedLength(const OutPacket& packet);

class WireSender final : public PacketTap::Carrier {
 public:
  WireSender(const HostParts& parts, UdpWire& udp, IpFamily family)
      : Carrier(true), parts_(parts), udp_(udp), v4_(family == IpFamily::kV4) {}

  // Whether there is a socket for packets of this path.
  bool reaches(const Path& path) const { return path.source.isV4() == path.destination.isV4() && udp_.isOpen(); }
  void send(const Path& path, const OutPacket& packet, uint32_t length);
  // Link::sendSingle().
  bool sendSingle(const Path& path, uint8_t* bth, uint32_t length);
  // 0, or the errno of the last packet that could not be sent.
  int flush() { return udp_.isOpen() ? udp_.flush() : 0; }
  // For Steering; `self` is a WireSender.
  static void sendProbe(void* self, const SteeringProbe& probe);

  void carry(const Path& path, const uint8_t* bytes, uint32_t length) override;

 private:
  static constexpr uint32_t kDestinationUses = 4096;  // packets for which a destination is assumed to stay local
  bool staysHere(const Gid& destination);

  const HostParts parts_;
  UdpWire& udp_;
  const bool v4_;
  IcrcStart icrc_;       // of the last packet
  Gid lastDestination_;  // whether that destination was on this host; looked up again now and then
  bool lastDestinationLocal_ = false;
  uint32_t lastDestinationUses_ = 0;
};

}  // namespace nd
