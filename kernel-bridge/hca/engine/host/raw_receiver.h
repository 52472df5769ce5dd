// Receives this process's packets through a raw socket, for exact ICRCs on IPv4 (raw_wire.h), and decides whether
// packets from other sources are verified to be intact. The IPv4 wire receiver owns it, and the local delivery queries
// it about packets forwarded by other processes. Requires the engine's lock.
#pragma once
#include "host/host_parts.h"
#include "udp/raw_wire.h"

namespace nd {

class RawReceiver {
 public:
  explicit RawReceiver(const HostParts& parts) : parts_(parts), raw_(parts.counters) {}

  // These do the same as in RawWire; divide() also adds the socket to the watched descriptors.
  int open(uint32_t receiveBufferBytes) { return raw_.open(receiveBufferBytes); }
  int divide(Descriptor udp);
  void close() { raw_.close(); }
  bool isOpen() const { return raw_.isOpen(); }

  // Returns the number of packets, including those that only serve as witnesses.
  uint32_t receive(uint32_t budget);
  // Returns whether a packet from another source is verified to be intact, and counts those that are not. Packets sent
  // by this host always are. The raw socket has received a copy of every other packet, before the UDP sockets did.
  bool vouchesFor(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  // Returns whether the raw socket has its own copy of a packet forwarded by another process. This is so for packets to
  // a queue pair from another host, or from this host's reliable connections. `strayed`: the packet came from the wire.
  bool hasOwnCopy(const PacketMeta& meta, const uint8_t* bth, bool strayed);

 private:
  void drain();
  const HostParts parts_;
  RawWire raw_;
};

}  // namespace nd
