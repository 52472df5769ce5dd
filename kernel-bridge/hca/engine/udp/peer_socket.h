// Receiving sockets that are connected to single peers, beside the socket on port 4791, which receives from all.
// The system finds such a socket by addresses and ports alone; there is no group to choose from. A datagram's addresses
// are known without control messages, so a short one is received by plain recv().
//
// A process of this host sends to each other one from a port of its own (udp_flow.h). After some datagrams from one
// port a socket is connected to it. A packet that is for another process closes it.
#pragma once
#include <array>
#include <memory>

#include "base/host_counters.h"
#include "base/packet_link.h"
#include "platform/datagram_socket.h"
#include "udp/udp_wire.h"

namespace nd {

// What a sender's next IPv4 ID will be, where it counts them.
struct CountedIds {
  uint16_t port = 0, last = 0;  // UDP source port; 0: none
};

class PeerSocket {
 public:
  bool ready() const { return open_; }
  Descriptor fd() const { return socket_.fd(); }
  uint16_t port() const { return port_; }  // its sender's
  CountedIds ids;
  FlowIcrc icrc;        // of its sender's packets
  bool strays = false;  // it brings packets for others: closed when it is empty
  bool is(const PacketMeta& meta, uint16_t port) const {
    return port_ == port && source_ == meta.source && destination_ == meta.destination;
  }

 private:
  friend class PeerSockets;
  DatagramSocket socket_;
  bool open_ = false;  // connected, and what others sent to it before is taken
  Gid source_, destination_;
  uint16_t port_ = 0;   // 0: an empty entry
  uint32_t heard_ = 0;  // datagrams by the port's socket
  bool refused_ = false;
  uint64_t used_ = 0;                        // when last, in datagrams
  uint32_t expected_ = 1;                    // datagrams that the next receive() asks for
  bool filled_ = false;                      // the last one got what it asked for
  uint32_t withoutMetadata_ = 0;             // datagrams that may be received without
  uint8_t trafficClass_ = 0, hopLimit_ = 0;  // of the last with metadata
};

// Those of one family.
class PeerSockets {
 public:
  static constexpr uint32_t kMostPeers = 16;
  static constexpr uint32_t kHeardBefore = 64;       // datagrams by the port's socket before one is worth a socket
  static constexpr uint32_t kUnusedFor = 1 << 16;    // datagrams of others, after which it gives way to another
  static constexpr uint32_t kNotHeardFor = 1 << 10;  // the same, of a sender that has no socket yet
  static constexpr uint32_t kWithoutMetadata = 15;   // of 16 short datagrams
  static constexpr uint32_t kShort = 512;            // longest of these

  PeerSockets(HostCounters& counters, IpFamily family) : counters_(counters), family_(family) {}

  // A datagram for this process has come by the port's socket. The peer socket to open for those that follow, or null.
  PeerSocket* consider(const PacketMeta& meta, uint16_t sourcePort);
  // Opening it. From bind() to connect() the system may put datagrams of others into it, and they stay there: between
  // connect() and settle() they are read with their addresses. False: there is no socket, or it does not receive from
  // this peer.
  bool bind(PeerSocket& peer, uint32_t receiveBufferBytes);
  bool connect(PeerSocket& peer);
  void settle(PeerSocket& peer);
  PeerSocket& at(uint32_t index) { return sockets_[index]; }
  uint32_t indexOf(const PeerSocket& peer) const { return static_cast<uint32_t>(&peer - sockets_.data()); }
  // Up to UdpWire::kReceiveBatch datagrams, valid until the next call by any of them. `withMetadata`: none without.
  uint32_t receive(PeerSocket& from, uint32_t budget, bool withMetadata);
  // One of them. Received without metadata: its segment size is unknown; traffic class and hop limit are the last known
  // ones.
  Datagram datagram(PeerSocket& from, uint32_t index);
  // For the single packet fast path: what the last receive() has taken without metadata, if it is short, with room for
  // FlowIcrc before it; null otherwise.
  uint8_t* single(uint32_t* length);
  PacketMeta metaOf(const PeerSocket& from) const;
  // That one is done with, and needs no datagram().
  void tookSingle(PeerSocket& from) { from.withoutMetadata_--; }
  // The next one is received with metadata.
  void wantMetadata(PeerSocket& from) { from.withoutMetadata_ = 0; }
  // Closes it, and opens no other for this peer.
  void refuse(PeerSocket& peer);
  void close();

 private:
  PeerSocket* entry(const PacketMeta& meta, uint16_t port);

  HostCounters& counters_;
  const IpFamily family_;
  uint64_t clock_ = 0;
  std::array<PeerSocket, kMostPeers> sockets_;
  std::unique_ptr<DatagramsIn> in_;
  bool withMetadata_ = false;  // of the last receive()
};

}  // namespace nd
