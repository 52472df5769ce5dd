// Exact ICRCs on IPv4 (option `icrc`): a raw socket beside the UDP socket shows the header that the ICRC covers and the
// UDP socket hides. It takes CAP_NET_RAW.
//
// What comes from other hosts to this process's queue pairs, and from this host to its reliable connections, is
// received by the raw socket; the UDP socket, which keeps the port and the host quiet (no ICMP), drops it by a filter.
// Of what one process of several receives, CM's MADs and datagrams to a group, the system gives every raw socket a
// copy, so the UDP sockets' choice still counts: the copy only witnesses that the packet was whole. All else of this
// host has ID 0 and comes by the UDP socket.
//
// Several packets may come in one piece, with one IP header: a sender's on this machine (UDP_SEGMENT), whose ICRCs
// count with the ID in that header; or joined by the interface, whose IDs follow each other. A raw socket does not see
// where they end: that is where another BTH begins and the ICRC before it is right.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "base/host_counters.h"
#include "base/icrc.h"
#include "platform/datagram_socket.h"
#include "platform/raw_socket.h"

namespace nd {

class RawWire {
 public:
  static constexpr uint32_t kBatch = DatagramsIn::kMost;  // packets received at once, at most
  // One packet whose ICRC is right.
  struct Packet {
    PacketMeta meta;
    IcrcHeaders headers;
    const uint8_t* bth = nullptr;
    uint32_t length = 0;  // BTH to pad
  };

  // What came at once: one packet, or several of equal length, but for the last, which may be shorter.
  struct Piece {
    PacketMeta meta;
    IcrcHeaders headers;             // of the first
    const uint8_t* bytes = nullptr;  // from the first BTH on
    uint32_t length = 0;             // of all; 0: nothing that can be used
    uint32_t segment = 0;            // BTH to ICRC
    uint32_t at = 0, index = 0;      // of the next
  };

  explicit RawWire(HostCounters& counters) : counters_(counters) {}
  // The raw socket. 0 or an errno; EPERM: the privilege is missing.
  int open(uint32_t receiveBufferBytes);
  // Divides between the two sockets by the destination QPN's part that is this process's. 0 or an errno.
  int divide(Descriptor udp, uint32_t slot) { return divideRoce(fd_.get(), udp, slot); }
  void close() { fd_.reset(); }
  bool isOpen() const { return fd_.valid(); }
  Descriptor fd() const { return fd_.get(); }

  // Receives a batch; answers how many pieces came, valid until the next call.
  uint32_t receive(uint32_t budget) { return in_->receive(fd_.get(), std::min(budget, kBatch)); }
  Piece piece(uint32_t index);
  // The next packet of a piece that is to be delivered, not corrupt and not kept as a witness; false at its end.
  bool next(Piece* piece, Packet* out);
  // Whether a packet with these bytes (BTH to pad), of those that only witness, has come whole not long ago.
  bool witnessed(const PacketMeta& meta, const uint8_t* bth, uint32_t length) const;

 private:
  struct Witness {
    uint32_t source = 0, destination = 0, length = 0, crc = 0;
  };
  static constexpr uint32_t kWitnesses = 4096;  // a power of two
  static Witness witnessOf(const PacketMeta& meta, const uint8_t* bth, uint32_t length);

  static uint32_t findSegment(const Piece& piece, uint32_t likely);
  static bool right(const Piece& piece, const uint8_t* bth, uint32_t whole, uint32_t index, IcrcHeaders* headers);

  HostCounters& counters_;
  UniqueFd fd_;
  uint32_t lastSegment_ = 0;  // of the last piece of several
  std::unique_ptr<DatagramsIn> in_;
  std::vector<Witness> witnesses_;
};

}  // namespace nd
