// Connected sockets, each of which sends to a single peer, while the socket on port 4791 still receives. A connected
// socket keeps its route, source address and header fields, which must otherwise be looked up and passed for each
// datagram. It has its own source port, which RoCEv2 allows.
//
// On IPv4, the OS numbers the datagrams of a connected socket with IP IDs, starting from a random one, and the ICRC
// covers these IDs. This class learns the ID from a looped-back datagram with its headers, and verifies it
// occasionally. A receiver cannot see the ID and would have to compute it from the ICRC. On IPv4, flows are therefore
// used only for destinations on this host; to other hosts the unconnected socket sends ID 0.
#pragma once
#include <array>

#include "base/host_counters.h"
#include "base/icrc.h"
#include "base/types.h"
#include "platform/datagram_socket.h"

namespace nd {

class UdpFlow {
 public:
  static constexpr uint32_t kUsesBefore = 32;       // packets on the unconnected socket before a path gets its own
  static constexpr uint32_t kSendBuffer = 4 << 20;  // bytes
  static constexpr uint32_t kCheckEvery = 4096;     // messages between two checks of the ID

  bool ready() const { return state_ == State::kReady; }
  const DatagramSocket& socket() const { return socket_; }
  uint16_t sourcePort() const { return socket_.port(); }
  // The ID of the next message. Unused on IPv6.
  uint16_t nextId() const { return nextId_; }

  bool is(const Path& path, uint32_t slot) const {
    return used_ != 0 && slot_ == slot && path_.destination == path.destination && path_.source == path.source &&
           path_.trafficClass == path.trafficClass && path_.hopLimit == path.hopLimit &&
           path_.scopeId == path.scopeId && (path_.flowLabel == path.flowLabel || isV4());  // not used on IPv4
  }
  // Called for each packet. Opens the socket once there have been enough packets. Returns whether the packet can use
  // the socket.
  bool use(HostCounters& counters);
  // Returns the ICRC of the next message, if it is a single small packet (FlowIcrc).
  uint32_t icrcOf(uint8_t* bth, uint32_t length) const { return icrc_.of(bth, length, nextId_); }
  // Called when a message was staged and has used an ID.
  void stagedOne() {
    nextId_++;
    staged_++;
  }
  // Called when the last `messages` staged messages are not sent; the first of them has this ID.
  void unstage(uint16_t id, uint32_t messages) {
    nextId_ = id;
    staged_ -= messages;
  }
  // Returns whether the ID of the next staged message should be checked. The caller then calls requestId().
  bool checkDue() const { return isV4() && staged_ % kCheckEvery == 0; }
  // Called when a message to be checked has been sent; its ICRC uses `id`. If it was sent with another ID, the flow is
  // closed.
  void check(uint16_t id, HostCounters& counters);
  // Called when a message was refused. Later staged messages have wrong IDs, and the next use starts anew.
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
  uint64_t used_ = 0;  // time of last use, in uses of the table; 0: never
};

// The flows of one address family, by path and, for destinations on this host, by the slot of the receiving process,
// which can then connect a socket to the flow (peer_socket.h). The least recently used flow is replaced.
class UdpFlows {
 public:
  static constexpr uint32_t kMost = 32;

  // Returns the path's entry. evicts() reports in advance whether this call would close the socket of another path.
  UdpFlow& at(const Path& path, uint32_t slot);
  bool evicts(const Path& path, uint32_t slot);
  // Returns the path's flow if it was the last one requested and is usable; otherwise null.
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
