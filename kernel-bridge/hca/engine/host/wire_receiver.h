// Receives the packets of one address family on the socket of port 4791, on sockets connected to single peers
// (peer_socket.h) and, for exact ICRCs, on a raw socket. It checks each packet and passes it to the intake, or to the
// process on this host to which the packet is addressed. It owns the peer sockets and the steering. The dispatcher
// calls receive() when a socket is readable. The local delivery calls drainPort() and drainPeers() before a message
// that may end a connection. Requires the engine's lock.
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
  // A MAD received on one family may end connections of both.
  void setSibling(WireReceiver& other) { sibling_ = &other; }

  int bind(uint32_t receiveBufferBytes, bool first, DatagramSocket* bound) const override;
  // Requires that the raw socket is open already, or not needed.
  int open(DatagramSocket bound, uint32_t receiveBufferBytes) override;
  int openBeside() override { return udp_.openBeside(family_); }
  void close() override;
  bool sends() const override { return udp_.isOpen(); }
  bool hears() const override { return udp_.hears(); }
  bool wasProbedByOther() override { return std::exchange(probedByOther_, false); }
  // Called when a process of another dialect has probed another process of this dialect.
  void onProbedByOther() { probedByOther_ = true; }

  void announceGroups(Descriptor owner) override;
  // Handles a frame of another process, received on a connection with this number; see Addresses.
  void onGroup(uint32_t member, const Frame& frame);
  void onMemberEnded(uint32_t member) { parts_.addresses.leaveAllFor(member, udp_, family_); }

  // Receives on the current socket. Returns the number of packets, including those dropped.
  uint32_t receive(uint32_t budget);
  // Makes the peer socket of this index, or the port's own, the current socket, because it is readable. Returns false
  // if it was already current.
  static constexpr uint32_t kPortSocket = UINT32_MAX;
  static constexpr uint32_t kPeers6 = 1 << 8;  // bit of a peer socket's number in the host's set: it belongs to IPv6
  bool turnTo(uint32_t peer);

  // Receives what the port's socket holds now, but nothing that arrives later, since a flood would never end.
  uint32_t drainPort();
  // Receives everything in the peer sockets, so that a message that may end connections does not overtake their
  // packets.
  uint32_t drainPeers();

  // The part of the steering: another process's reply to a probe, and when onTime() is due.
  void onProbeReply(const ProbeReply& reply) { steering_.onReply(reply); }
  uint64_t deadline() const { return probedByOther_ ? 0 : steering_.deadline(); }
  void onTime(uint64_t now) { steering_.onTime(now); }

 private:
  using Datagram = UdpWire::Datagram;
  static constexpr uint32_t kRawBatches = 4;  // batches of the raw socket for each one of the UDP socket
  struct Early {
    Datagram datagram;
    std::vector<uint8_t> bytes;
  };

  // ── On the port's socket. `datagrams`: the number received.
  uint32_t receiveByPort(uint32_t budget, uint32_t* datagrams = nullptr);
  uint32_t drainUdp();

  // ── By peer sockets
  uint32_t receiveByPeer(PeerSocket& peer, uint32_t budget);
  bool takeSingle(PeerSocket& peer);
  void considerPeer(const Datagram& datagram);
  uint32_t openPeer();
  uint32_t takeEarly();

  // ── All sockets. `by` is null for the port's socket.
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
  PeerSocket* turn_ = nullptr;    // the socket that last delivered packets; null: the port's socket
  PeerSocket* wanted_ = nullptr;  // to be opened
  std::vector<Early> early_;      // received on a peer socket while it was opened: delivered after the port socket's
                                  // earlier contents
  IcrcChecker icrc_;
  CountedIds ids_;  // IDs of the last sender to the port's socket whose IPv4 IDs are not 0
  Steering steering_;
  uint32_t receiveBufferBytes_ = 0;
  bool probedByOther_ = false;  // a process of another dialect has sent a probe
  uint32_t rawBatches_ = 0;     // since the UDP socket was last polled
};

}  // namespace nd
