// Exact ICRCs on IPv4 (raw_wire.h): receives this process's packets by a raw socket, and says of packets that come
// otherwise whether they are known to be whole. The IPv4 wire receiver has it, and the local delivery asks about what
// other processes hand over; with the engine's lock held.
#pragma once
#include "host/host_parts.h"
#include "udp/raw_wire.h"

namespace nd {

class RawReceiver {
 public:
  explicit RawReceiver(const HostParts& parts) : parts_(parts), raw_(parts.counters) {}

  // As RawWire's, and watched.
  int open(uint32_t receiveBufferBytes) { return raw_.open(receiveBufferBytes); }
  int divide(Descriptor udp);
  void close() { raw_.close(); }
  bool isOpen() const { return raw_.isOpen(); }

  // Answers how many packets came, those included that only witness.
  uint32_t receive(uint32_t budget);
  // Whether a packet that came otherwise is known to be whole. What this host has sent itself is; of all others the raw
  // socket has had a copy, before the UDP sockets. Counts those that are not.
  bool vouchesFor(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  // Whether the raw socket has a copy of its own of what another process hands over (`strayed`: that came by the wire):
  // a queue pair's packet from another host, or from this one's reliable connections.
  bool hasOwnCopy(const PacketMeta& meta, const uint8_t* bth, bool strayed);

 private:
  void drain();
  const HostParts parts_;
  RawWire raw_;
};

}  // namespace nd
