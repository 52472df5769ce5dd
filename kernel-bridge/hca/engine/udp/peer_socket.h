// Receiving sockets that are connected to a single peer each, in addition to the socket on port 4791, which receives
// from all. The OS selects a connected socket by addresses and ports alone, not from a group. Since the addresses of
// its datagrams are known without control messages, short datagrams are received with a plain recv().
//
// A process on this host sends to each other process from a separate port (udp_flow.h). After a number of datagrams
// from such a port, a socket is connected to it. A packet for another process closes that socket.
#pragma once
#include <array>
#include <memory>

#include "base/host_counters.h"
#include "base/packet_link.h"
#include "platform/datagram_socket.h"
#include "udp/udp_wire.h"

namespace nd {

// The next IPv4 ID of a sender, if it counts IDs.
struct CountedIds {
  uint16_t port = 0, last = 0;  // UDP source port; 0: none
};

class PeerSocket {
 public:
  bool ready() const { return open_; }
  Descriptor fd() const { return socket_.fd(); }
  uint16_t port() const { return port_; }  // the port of its sender
  CountedIds ids;
  FlowIcrc icrc;        // the ICRC state of its sender's packets
  bool strays = false;  // it receives packets for others, and is closed once empty
  bool is(const PacketMeta& meta, uint16_t port) const {
    return port_ == port && source_ == meta.source && destination_ == meta.destination;
  }

 private:
  friend class PeerSockets;
  DatagramSocket socket_;
  bool open_ = false;  // connected, and earlier datagrams from other senders have been received
  Gid source_, destination_;
  uint16_t port_ = 0;   // 0: unused entry
  uint32_t heard_ = 0;  // datagrams received on the port's socket
  bool refused_ = false;
  uint64_t used_ = 0;                        // time of last use, in datagrams
  uint32_t expected_ = 1;                    // datagrams that the next receive() requests
  bool filled_ = false;                      // the last one got as many as it requested
  uint32_t withoutMetadata_ = 0;             // datagrams that may be received without metadata
  uint8_t trafficClass_ = 0, hopLimit_ = 0;  // those of the last datagram with metadata
};

// The peer sockets of one address family.
class PeerSockets {
 public:
  static constexpr uint32_t kMostPeers = 16;
  static constexpr uint32_t kHeardBefore = 64;       // datagrams on the port's socket before a sender gets a socket
  static constexpr uint32_t kUnusedFor = 1 << 16;    // datagrams from others, after which it can be replaced
  static constexpr uint32_t kNotHeardFor = 1 << 10;  // the same for a sender that has no socket yet
  static constexpr uint32_t kWithoutMetadata = 15;   // of 16 short datagrams
  static constexpr uint32_t kShort = 512;            // maximum length of these

  PeerSockets(HostCounters& counters, IpFamily family) : counters_(counters), family_(family) {}

  // Called when a datagram for this process has been received on the port's socket. Returns the peer socket to open for
  // later ones, or null.
  PeerSocket* consider(const PacketMeta& meta, uint16_t sourcePort);
  // Opens the peer socket. From bind() to connect() the OS may queue datagrams of other senders on it, and they stay
  // there. Between connect() and settle(), datagrams are therefore read with their addresses. Returns false if there is
  // no socket, or it does not receive from this peer.
  bool bind(PeerSocket& peer, uint32_t receiveBufferBytes);
  bool connect(PeerSocket& peer);
  void settle(PeerSocket& peer);
  PeerSocket& at(uint32_t index) { return sockets_[index]; }
  uint32_t indexOf(const PeerSocket& peer) const { return static_cast<uint32_t>(&peer - sockets_.data()); }
  // Receives up to UdpWire::kReceiveBatch datagrams, valid until the next call for any socket. `withMetadata`: all of
  // them with metadata.
  uint32_t receive(PeerSocket& from, uint32_t budget, bool withMetadata);
  // Returns one of them. If it was received without metadata, its segment size is unknown, and traffic class and hop
  // limit are the last known ones.
  Datagram datagram(PeerSocket& from, uint32_t index);
  // For the single-packet fast path. Returns the datagram that the last receive() received without metadata, if it is
  // short, with room for FlowIcrc before it; otherwise null.
  uint8_t* single(uint32_t* length);
  PacketMeta metaOf(const PeerSocket& from) const;
  // Called when that datagram has been handled, and datagram() is not needed.
  void tookSingle(PeerSocket& from) { from.withoutMetadata_--; }
  // Makes the socket receive the next datagram with metadata.
  void wantMetadata(PeerSocket& from) { from.withoutMetadata_ = 0; }
  // Closes the socket, and opens no other one for this peer.
  void refuse(PeerSocket& peer);
  void close();

 private:
  PeerSocket* entry(const PacketMeta& meta, uint16_t port);

  HostCounters& counters_;
  const IpFamily family_;
  uint64_t clock_ = 0;
  std::array<PeerSocket, kMostPeers> sockets_;
  std::unique_ptr<DatagramsIn> in_;
  bool withMetadata_ = false;  // as in the last receive()
};

}  // namespace nd
