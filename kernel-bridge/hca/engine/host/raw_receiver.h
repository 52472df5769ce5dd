// Exact ICRCs on IPv4 (raw_wire.h): receives this process's packets through a raw socket, and decides whether packets
// from elsewhere are verified to be intact. Owned by the IPv4 wire receiver; the local delivery queries it about
// packets passed on by other processes. Requires the engine's lock.
#pragma once
#include "host/host_parts.h"
#include "udp/raw_wire.h"

namespace nd {

class RawReceiver {
 public:
  explicit RawReceiver(const HostParts& parts) : parts_(parts), raw_(parts.counters) {}

  // As for RawWire; also watched.
  int open(uint32_t receiveBufferBytes) { return raw_.open(receiveBufferBytes); }
  int divide(Descriptor udp);
  void close() { raw_.close(); }
  bool isOpen() const { return raw_.isOpen(); }

  // Returns the number of packets, including those that only serve as witnesses.
  uint32_t receive(uint32_t budget);
  // Whether a packet from another source is verified to be intact. Packets sent by this host are; of all others the raw
  // socket has received a copy, before the UDP sockets. Counts those that are not verified.
  bool vouchesFor(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  // Whether the raw socket has its own copy of a packet passed on by another process (`strayed`: it came from the
  // wire): a packet for a queue pair from another host, or from this host's reliable connections.
  bool hasOwnCopy(const PacketMeta& meta, const uint8_t* bth, bool strayed);

 private:
  void drain();
  const HostParts parts_;
  RawWire raw_;
};

}  // namespace nd
