// Sends the packets of one address family over UDP, through a connected socket per flow (udp_flow.h) or through the
// socket on port 4791. Packets are sent in batches, or singly if they are small. The sender caches facts about its last
// packets. It is called by Host::send(), sendSingle() and flush(), and by the tap for packets that the tap lets pass.
// Requires the engine's lock.
#pragma once
#include "host/host_parts.h"
#include "udp/steering.h"

namespace nd {

// Returns the length of a packet from its BTH to its last pad byte, or 0 if it must not be sent.
uint32_t checkedLength(const OutPacket& packet);

class WireSender final : public PacketTap::Carrier {
 public:
  WireSender(const HostParts& parts, UdpWire& udp, IpFamily family)
      : Carrier(true), parts_(parts), udp_(udp), v4_(family == IpFamily::kV4) {}

  // Returns whether there is a socket for packets of this path.
  bool reaches(const Path& path) const { return path.source.isV4() == path.destination.isV4() && udp_.isOpen(); }
  void send(const Path& path, const OutPacket& packet, uint32_t length);
  // See Link::sendSingle().
  bool sendSingle(const Path& path, uint8_t* bth, uint32_t length);
  // Returns 0, or the errno of the last packet that could not be sent.
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
  IcrcStart icrc_;       // the start of the last packet's ICRC
  Gid lastDestination_;  // whether that destination was on this host; looked up again now and then
  bool lastDestinationLocal_ = false;
  uint32_t lastDestinationUses_ = 0;
};

}  // namespace nd
