// Exact ICRCs on IPv4 (option `icrc`). In addition to the UDP socket there is a raw socket, which shows the IP header
// that the ICRC covers and the UDP socket hides. Requires CAP_NET_RAW.
//
// The raw socket receives packets from other hosts to this process's queue pairs, and from this host to its reliable
// connections. The UDP socket, which keeps the port open and prevents ICMP errors, has a filter that drops these
// packets. CM MADs and datagrams to a group are addressed to one of several processes, but the OS copies them to every
// raw socket. The UDP sockets therefore still select the process, and the copy only shows that the packet was intact.
// All other packets of this host have ID 0 and arrive through the UDP socket.
//
// Several packets may arrive in one piece, with one IP header. They either come from a sender on this host
// (UDP_SEGMENT), whose ICRCs use the ID in that header, or were joined by the interface and have consecutive IDs. Since
// a raw socket does not report where a packet ends, the end is assumed where another BTH begins and the preceding ICRC
// is right.
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
  static constexpr uint32_t kBatch = DatagramsIn::kMost;  // maximum number of packets received together
  // A packet whose ICRC is right.
  struct Packet {
    PacketMeta meta;
    IcrcHeaders headers;
    const uint8_t* bth = nullptr;
    uint32_t length = 0;  // BTH to pad
  };

  // Packets received together: one, or several of equal length, of which the last may be shorter.
  struct Piece {
    PacketMeta meta;
    IcrcHeaders headers;             // the headers of the first packet
    const uint8_t* bytes = nullptr;  // the bytes from the first BTH on
    uint32_t length = 0;             // length of all packets; 0: unusable
    uint32_t segment = 0;            // BTH to ICRC
    uint32_t at = 0, index = 0;      // position and number of the next packet
  };

  explicit RawWire(HostCounters& counters) : counters_(counters) {}
  // Opens the raw socket. Returns 0 or an errno, EPERM if the privilege is missing.
  int open(uint32_t receiveBufferBytes);
  // Divides packets between the two sockets by this process's part of the destination QPN. Returns 0 or an errno.
  int divide(Descriptor udp, uint32_t slot) { return divideRoce(fd_.get(), udp, slot); }
  void close() { fd_.reset(); }
  bool isOpen() const { return fd_.valid(); }
  Descriptor fd() const { return fd_.get(); }

  // Receives a batch. Returns the number of pieces, which are valid until the next call.
  uint32_t receive(uint32_t budget) { return in_->receive(fd_.get(), std::min(budget, kBatch)); }
  Piece piece(uint32_t index);
  // Finds the next packet of a piece to be delivered, skipping corrupt packets and those kept as witnesses. Returns
  // false at its end.
  bool next(Piece* piece, Packet* out);
  // Returns whether a recent witness packet with these bytes (BTH to pad) was received intact.
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
  uint32_t lastSegment_ = 0;  // packet length in the last piece with several packets
  std::unique_ptr<DatagramsIn> in_;
  std::vector<Witness> witnesses_;
};

}  // namespace nd
