// Connected sockets for sending to one peer, beside the socket on port 4791, which goes on receiving. A connected
// socket keeps its route, its source address and its header fields; otherwise they are looked up and passed anew for
// each datagram. Its source port is its own; RoCEv2 leaves that to the sender.
//
// On IPv4 the system counts the IP IDs of a connected socket, from a random one on, and the ICRC covers them. The ID is
// learned from a datagram that comes back with its headers, and checked again now and then. A receiver cannot see the
// ID and would have to solve for it: so this is done for destinations on this host only. To others the unconnected
// socket sends ID 0.
#pragma once
#include <array>

#include "base/host_counters.h"
#include "base/icrc.h"
#include "base/types.h"
#include "platform/datagram_socket.h"

namespace nd {

class UdpFlow {
 public:
  static constexpr uint32_t kUsesBefore = 32;       // packets by the unconnected socket before it is worth a socket
  static constexpr uint32_t kSendBuffer = 4 << 20;  // bytes
  static constexpr uint32_t kCheckEvery = 4096;     // messages between two looks at the ID

  bool ready() const { return state_ == State::kReady; }
  const DatagramSocket& socket() const { return socket_; }
  uint16_t sourcePort() const { return socket_.port(); }
  // Of the next message. IPv6 has none.
  uint16_t nextId() const { return nextId_; }

  bool is(const Path& path, uint32_t slot) const {
    return used_ != 0 && slot_ == slot && path_.destination == path.destination && path_.source == path.source &&
           path_.trafficClass == path.trafficClass && path_.hopLimit == path.hopLimit &&
           path_.scopeId == path.scopeId && (path_.flowLabel == path.flowLabel || isV4());  // of which IPv4 has none
  }
  // A packet for it: opens the socket when there have been enough of them. True if it can go by the socket.
  bool use(HostCounters& counters);
  // Of the next message, if it is one packet of few bytes (FlowIcrc).
  uint32_t icrcOf(uint8_t* bth, uint32_t length) const { return icrc_.of(bth, length, nextId_); }
  // A message was staged: its ID is taken.
  void stagedOne() {
    nextId_++;
    staged_++;
  }
  // The last `messages` of them do not leave, of which the first has this ID.
  void unstage(uint16_t id, uint32_t messages) {
    nextId_ = id;
    staged_ -= messages;
  }
  // Whether the next message to be staged is one to look at; the caller asks for its ID.
  bool checkDue() const { return isV4() && staged_ % kCheckEvery == 0; }
  // A message that is looked at has left; `id` is the one that its ICRC counts with. If it left with another, the flow
  // is closed.
  void check(uint16_t id, HostCounters& counters);
  // A message was refused: what was staged after it has wrong IDs, and the next use begins anew.
  void failed();

 private:
  friend class UdpFlows;
  enum class State { kCounting, kReady, kRefused };
  bool isV4() const { return path_.destination.isV4(); }
  bool open();

  State state_ = State::kCounting;
  Path path_;
  uint32_t slot_ = 0;
  DatagramSocket socket_;
  uint16_t nextId_ = 0;
  FlowIcrc icrc_;
  uint32_t uses_ = 0, staged_ = 0;
  uint64_t used_ = 0;  // when, in uses of the table; 0: never
};

// Those of one family, by path and, on this host, the slot of the receiving process, so that it can connect a socket to
// them (peer_socket.h). The least recently used one gives way.
class UdpFlows {
 public:
  static constexpr uint32_t kMost = 32;

  // The path's entry. `evicts` says beforehand whether finding it closes another's socket.
  UdpFlow& at(const Path& path, uint32_t slot);
  bool evicts(const Path& path, uint32_t slot);
  // The path's, if it was the last that was asked for and can be used; else null.
  UdpFlow* readyOne(const Path& path, uint32_t slot) {
    if (last_ == nullptr || !last_->is(path, slot) || !last_->ready()) return nullptr;
    last_->used_ = ++clock_;
    return last_;
  }
  void close();
  uint32_t openSockets() const;

 private:
  UdpFlow* find(const Path& path, uint32_t slot);
  UdpFlow& oldest();
  std::array<UdpFlow, kMost> flows_;
  UdpFlow* last_ = nullptr;
  uint64_t clock_ = 0;
};

}  // namespace nd
