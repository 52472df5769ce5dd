// The processes on this host that use RDMA. Each owns a slot and forwards packets to the others.
//
// A process sends on connections that it has opened and receives on those that it has accepted, so two processes have
// one connection for each direction. The sender's connection also shows when the other process ends. A process that
// ends in order announces this with a Goodbye frame, the only frame that is sent against the direction of a connection.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/host_counters.h"
#include "platform/local_names.h"
#include "platform/local_socket.h"
#include "platform/readiness.h"
#include "platform/unique_fd.h"
#include "slots/frame.h"

namespace nd {

// The prefix of a slot's name in local_names.h; its number follows.
constexpr char kSlotPrefix[] = "slot/";
std::string slotName(uint32_t slot);

struct FrameOrigin {
  Descriptor connection = kNoDescriptor;
  uint32_t id = 0;            // Inbound's number of that connection
  UniqueFd fds[kMostPassed];  // descriptors passed with the frame
  uint32_t fdCount = 0;
};

// Accepted connections, from the slot's listener and from those of RDMA ports. All input is checked; a peer that sends
// an invalid frame is disconnected.
class Inbound {
 public:
  using Handler = void (*)(void* argument, const Frame& frame, FrameOrigin& origin);
  Inbound(HostCounters& counters, LocalNames& names, Readiness& readiness)
      : counters_(counters), names_(names), readiness_(readiness) {}
  // Accepts waiting connections, within limits. `claim`: the owner, if it is a port's listener. Returns false if
  // connections keep waiting because no descriptor is available.
  bool acceptFrom(Descriptor listener, uint32_t claim = 0) { return accept(listener, kAcceptsPerEvent, claim); }
  // Closes the connections of a port's claim that has ended.
  void closeClaim(uint32_t claim);
  // Reads at most `budget` frames from one connection and returns their number. Drops a connection that has ended.
  uint32_t read(uint32_t id, uint32_t budget, Handler handler, void* argument);
  bool has(uint32_t id) const { return connections_.count(id) != 0; }
  // Called before an orderly end: accepts all waiting connections, and announces the end on all connections.
  void acceptAll(Descriptor listener);
  void sayGoodbye();
  void closeAll() { connections_.clear(); }
  size_t size() const { return connections_.size(); }

 private:
  // There is at most one for each other process, and one for each of its RdmaPorts::kMaxOwners.
  static constexpr size_t kMaxConnections = 4096;
  static constexpr uint32_t kAcceptsPerEvent = 16;
  struct Connection {
    UniqueFd fd;
    uint32_t claim = 0;
  };
  bool accept(Descriptor listener, uint32_t budget, uint32_t claim);
  HostCounters& counters_;
  LocalNames& names_;
  Readiness& readiness_;
  uint32_t nextId_ = 1;
  std::unordered_map<uint32_t, Connection> connections_;
  alignas(64) uint8_t buffer_[Frame::kMaxBytes + 1];  // one extra byte, to detect a frame that is too long
};

// How a watched process has ended.
enum class Departure { kNone, kOrderly, kLost };

class Slots {
 public:
  static constexpr uint32_t kMax = kSlots;
  Slots(HostCounters& counters, LocalNames& names, Readiness& readiness)
      : counters_(counters), names_(names), readiness_(readiness) {}

  // Claims the lowest free slot. Returns 0, EADDRINUSE if processes of this user have all slots, EMFILE, or another
  // error.
  int claim();
  // From now on no process can connect; the slot stays taken.
  void refuse() { refuseLocal(listener_.get()); }
  void release();
  // Returns the slot claimed last, or kMax if none has been.
  uint32_t slot() const { return slot_; }
  Descriptor listener() const { return listener_.get(); }
  // Returns the slots currently owned by processes of this user, in ascending order.
  std::vector<uint32_t> live();
  // Returns the same slots, looked up at most ten times a second.
  const std::vector<uint32_t>& liveNow(uint64_t now);

  // Sends a frame, or queues it until the peer reads. Returns 0 or an errno, and counts errors. The errno is EMFILE or
  // ENFILE without a free descriptor, EAGAIN if the process does not read, and another one if no process owns the slot.
  int send(uint32_t slot, const Frame& frame, const Descriptor* fds = nullptr, uint32_t fdCount = 0);
  // Does the same for every other process of this user.
  void sendToOthers(const Frame& frame, uint64_t now);
  // Finds the owner of the slot, according to the connection that send() uses. Returns false if there is none, or it is
  // unreachable.
  bool identify(uint32_t slot, PeerIdentity* identity);
  // Returns whether frames of this accepted connection come from the slot's owner, and its identity. Without this check
  // another process could set up or disturb state that is not its own. Returns false if the connection has ended,
  // because the former owner may have been an HCA of the same process.
  bool isOwner(uint32_t slot, Descriptor connection, PeerIdentity* sender);
  // Does the same, but also returns true if the slot no longer has an owner, because the last messages of a process may
  // be read after its end.
  bool mayComeFrom(uint32_t slot, Descriptor connection);
  // From now on onOutbound() reports the end of the process that owns the slot. Returns 0, EMFILE or ENFILE without a
  // free descriptor, or another errno if no process owns the slot.
  int watch(uint32_t slot);
  // Returns whether the watched process has ended but onOutbound() has not been called for it yet.
  bool endedUnseen(uint32_t slot) const;
  // Handles an event on the connection to this slot. Unless it returns kNone, the watched process has ended.
  Departure onOutbound(uint32_t slot, uint32_t kinds, uint64_t now);

 private:
  static constexpr size_t kMaxQueuedFrames = 1024, kMaxQueuedBytes = 4u << 20;
  static constexpr uint32_t kMaxReconnects = 16;
  static constexpr uint64_t kReconnectWindowNs = 1'000'000'000, kLiveNs = 100'000'000;
  struct Queued {
    std::vector<uint8_t> bytes;
    UniqueFd fds[kMostPassed];
    uint32_t fdCount = 0;
  };
  struct Peer {
    UniqueFd fd;
    ProcessId process = 0;
    bool watched = false;
    bool wantsOut = false;
    bool saidGoodbye = false;
    uint32_t reconnects = 0;
    uint64_t firstReconnect = 0;
    std::deque<Queued> queue;
    size_t queuedBytes = 0;
  };
  int connectTo(uint32_t slot, UniqueFd* fd, ProcessId* process, LocalNames::Lookup lookup = LocalNames::Lookup::kNow);
  Peer* peer(uint32_t slot, int* error, LocalNames::Lookup lookup = LocalNames::Lookup::kNow);
  bool isOther(uint32_t slot) const { return slot < kMax && slot != slot_; }
  static bool isSame(Descriptor connection, const PeerIdentity& owner, PeerIdentity* sender);
  void drain(uint32_t slot, Peer& peer);
  void setWantsOut(uint32_t slot, Peer& peer, bool wanted);

  HostCounters& counters_;
  LocalNames& names_;
  Readiness& readiness_;
  uint32_t slot_ = kMax;
  UniqueFd listener_;
  std::vector<uint32_t> live_;
  uint64_t liveUntil_ = 0;
  std::array<std::unique_ptr<Peer>, kMax> peers_;
};

}  // namespace nd
