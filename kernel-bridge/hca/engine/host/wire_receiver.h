// Receives what comes for one address family: by the socket on port 4791, by sockets connected to single peers
// (peer_socket.h) and, for exact ICRCs, by a raw one. Checks each packet; gives it to the intake, or to the process of
// this host that it is for. Owns the peer sockets and the steering. The dispatcher calls receive() when a socket has
// something, the local delivery drainPort() and drainPeers() before a message that may end a connection; with the
// engine's lock held.
#pragma once
#include <utility>
#include <vector>

#include "host/raw_receiver.h"
#include "host/wire_sender.h"
#include "slots/udp_port_claim.h"
#include "udp/icrc_checker.h"

namespace nd {

class WireReceiver final : public PortSocket {
 public:
  // `raw`: null for IPv6.
  WireReceiver(const HostParts& parts, UdpWire& udp, WireSender& sender, RawReceiver* raw, IpFamily family);
  // A MAD that comes by one family may end connections of both.
  void setSibling(WireReceiver& other) { sibling_ = &other; }

  int bind(uint32_t receiveBufferBytes, bool first, DatagramSocket* bound) const override;
  // The raw socket is open already, or not wanted.
  int open(DatagramSocket bound, uint32_t receiveBufferBytes) override;
  int openBeside() override { return udp_.openBeside(family_); }
  void close() override;
  bool sends() const override { return udp_.isOpen(); }
  bool hears() const override { return udp_.hears(); }
  bool wasProbedByOther() override { return std::exchange(probedByOther_, false); }
  // Another process of this dialect was.
  void onProbedByOther() { probedByOther_ = true; }

  void tellGroups(Descriptor owner) override;
  // Of another process, which tells by a connection of this number; see Addresses.
  void onGroup(uint32_t member, const Frame& frame);
  void onMemberEnded(uint32_t member) { parts_.addresses.leaveAllFor(member, udp_, family_); }

  // Packets by the socket that has the turn; their number, those included that were dropped.
  uint32_t receive(uint32_t budget);
  // The peer socket of this index, or the port's own, has something, and the turn from now on. False: it had the turn
  // before.
  static constexpr uint32_t kPortSocket = UINT32_MAX;
  static constexpr uint32_t kPeers6 = 1 << 8;  // of a peer socket's number in the host's set: it is one for IPv6
  bool turnTo(uint32_t peer);

  // What the port's socket holds now, and nothing that arrives later: a flood has no end.
  uint32_t drainPort();
  // All that lies in peer sockets, so that a message that may end connections does not overtake their packets.
  uint32_t drainPeers();

  // The steering's: another process has answered a probe; when onTime() has something to do.
  void onProbeReply(const ProbeReply& reply) { steering_.onReply(reply); }
  uint64_t deadline() const { return probedByOther_ ? 0 : steering_.deadline(); }
  void onTime(uint64_t now) { steering_.onTime(now); }

 private:
  using Datagram = UdpWire::Datagram;
  static constexpr uint32_t kRawBatches = 4;  // of the raw socket for one of the UDP socket beside it
  struct Early {
    Datagram datagram;
    std::vector<uint8_t> bytes;
  };

  // ── By the port's socket. `datagrams`: how many came.
  uint32_t receiveByPort(uint32_t budget, uint32_t* datagrams = nullptr);
  uint32_t drainUdp();

  // ── By peer sockets
  uint32_t receiveByPeer(PeerSocket& peer, uint32_t budget);
  bool takeSingle(PeerSocket& peer);
  void considerPeer(const Datagram& datagram);
  uint32_t openPeer();
  uint32_t takeEarly();

  // ── All. `by`: null: the port's socket.
  uint32_t take(const Datagram& datagram, PeerSocket* by);
  void onPacket(const Datagram& datagram, PeerSocket* by, const uint8_t* bth, uint32_t whole, bool accepted);
  bool isIntact(const Datagram& datagram, PeerSocket* by, const uint8_t* bth, uint32_t length, IcrcHeaders* headers);
  void onGroupPacket(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length,
                     bool accepted);
  void onUnaccepted(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  void onProbe(const Datagram& datagram, const uint8_t* bth, uint32_t length);
  void forward(const PacketMeta& meta, PeerSocket* by, const uint8_t* bth, uint32_t length);
  bool exact() const { return raw_ != nullptr && raw_->isOpen(); }

  const HostParts parts_;
  UdpWire& udp_;
  RawReceiver* const raw_;
  WireReceiver* sibling_ = nullptr;
  const IpFamily family_;
  PeerSockets peers_;
  PeerSocket* turn_ = nullptr;    // where packets came from last; null: the port's socket
  PeerSocket* wanted_ = nullptr;  // to be opened
  std::vector<Early> early_;      // came by a peer socket while it was opened: goes after what is in the port's
  IcrcChecker icrc_;
  CountedIds ids_;  // of the last sender to the port's socket whose IPv4 IDs are not 0
  Steering steering_;
  uint32_t receiveBufferBytes_ = 0;
  bool probedByOther_ = false;  // by a process of another dialect
  uint32_t rawBatches_ = 0;     // since the UDP socket beside it was looked at
};

}  // namespace nd
