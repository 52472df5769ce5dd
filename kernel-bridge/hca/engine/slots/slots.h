// The processes of this host that speak RDMA: each owns a slot, and tells others' packets to them.
//
// A process sends on connections it made itself and receives on those it accepted, so a pair of processes that
// talk has one for each direction. The sender's one also tells when the process at its end is gone, and a process
// that ends in order says so there: only a Goodbye frame ever comes back on it.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/host_counters.h"
#include "platform/local_names.h"
#include "platform/local_socket.h"
#include "platform/unique_fd.h"
#include "slots/frame.h"

namespace nd {

// Descriptors that come or go with a frame.
constexpr uint32_t kMaxFrameFds = 3;
struct FrameOrigin {
  int connection = -1;
  UniqueFd fds[kMaxFrameFds];
  uint32_t fdCount = 0;
};

// Accepted connections, from the slot's listener and from those of RDMA ports. Everything that comes in is
// checked; a peer that sends nonsense is disconnected.
class Inbound {
 public:
  using Handler = void (*)(void* argument, const Frame& frame, FrameOrigin& origin);
  Inbound(HostCounters& counters, LocalNames& names, int epoll) : counters_(counters), names_(names), epoll_(epoll) {}
  // Accepts what waits at the listener, within bounds; `claim`: whose it is, if it is a port's. False: it waits on, for the
  // system has no descriptor for it now.
  bool acceptFrom(int listener, uint32_t claim = 0) { return accept(listener, kAcceptsPerEvent, claim); }
  // Closes the connections of a port's claim that is gone.
  void closeClaim(uint32_t claim);
  // Reads at most `budget` frames of one connection. Returns their number; forgets the connection at its end.
  uint32_t read(uint32_t id, uint32_t budget, Handler handler, void* argument);
  // Before an orderly end: takes in everybody who waits at the listener, and tells all of them.
  void acceptAll(int listener);
  void sayGoodbye();
  void closeAll() { connections_.clear(); }
  size_t size() const { return connections_.size(); }

 private:
  // Of each other process one, and one for each of its Ports::kMaxOwners, at most.
  static constexpr size_t kMaxConnections = 4096;
  static constexpr uint32_t kAcceptsPerEvent = 16;
  struct Connection {
    UniqueFd fd;
    uint32_t claim = 0;
  };
  bool accept(int listener, uint32_t budget, uint32_t claim);
  HostCounters& counters_;
  LocalNames& names_;
  int epoll_;
  uint32_t nextId_ = 1;
  std::unordered_map<uint32_t, Connection> connections_;
  alignas(64) uint8_t buffer_[Frame::kMaxBytes + 1];  // one more, to see what is too long
};

// What became of a watched process.
enum class Departure { kNone, kOrderly, kLost };

class Slots {
 public:
  static constexpr uint32_t kMax = kSlots;
  Slots(HostCounters& counters, LocalNames& names, int epoll) : counters_(counters), names_(names), epoll_(epoll) {}

  // Takes the lowest free slot. 0, EMFILE and the like, or EADDRINUSE: processes of this user have all of them.
  int claim();
  void release();
  // The slot claimed last; kMax before.
  uint32_t slot() const { return slot_; }
  int listener() const { return listener_.get(); }
  // Slots owned by some process of this user now, ascending.
  std::vector<uint32_t> live();
  // The same, looked up ten times a second at most.
  const std::vector<uint32_t>& liveNow(uint64_t now);

  // Sends a frame, or keeps it until the peer reads. False: no such process, or it does not read (both counted).
  bool send(uint32_t slot, const Frame& frame, const int* fds = nullptr, uint32_t fdCount = 0);
  // The same to every other process of this user.
  void sendToOthers(const Frame& frame, uint64_t now);
  // Who has the slot, at the connection that send() uses. False: nobody, or nobody who can be talked to.
  bool identify(uint32_t slot, PeerIdentity* identity);
  // Whether what comes by this accepted connection comes from the process that has the slot: another could set up, or spoil,
  // what is not its own. Tells whose process it is.
  bool isOwner(uint32_t slot, int connection, PeerIdentity* sender);
  // The same, but true as well if nobody has the slot any more: the last messages of a process may be read after its end.
  bool mayComeFrom(uint32_t slot, int connection);
  // Whether a process owns the slot; from now on its end is reported by onOutbound().
  bool watch(uint32_t slot);
  // Whether the process watched there has ended, and onOutbound() was not called for it yet.
  bool endedUnseen(uint32_t slot) const;
  // Something happened on the connection to this slot. Not kNone: the process watched there is gone.
  Departure onOutbound(uint32_t slot, uint32_t events, uint64_t now);

 private:
  static constexpr size_t kMaxQueuedFrames = 1024, kMaxQueuedBytes = 4u << 20;
  static constexpr uint32_t kMaxReconnects = 16;
  static constexpr uint64_t kReconnectWindowNs = 1'000'000'000, kLiveNs = 100'000'000;
  struct Queued {
    std::vector<uint8_t> bytes;
    UniqueFd fds[kMaxFrameFds];
    uint32_t fdCount = 0;
  };
  struct Peer {
    UniqueFd fd;
    pid_t pid = 0;
    bool watched = false;
    bool wantsOut = false;
    bool saidGoodbye = false;
    uint32_t reconnects = 0;
    uint64_t firstReconnect = 0;
    std::deque<Queued> queue;
    size_t queuedBytes = 0;
  };
  int connectTo(uint32_t slot, UniqueFd* fd, pid_t* pid, LocalNames::Look look = LocalNames::Look::kNow);
  Peer* peer(uint32_t slot, int* error, LocalNames::Look look = LocalNames::Look::kNow);
  void drain(uint32_t slot, Peer& peer);
  void setWantsOut(uint32_t slot, Peer& peer, bool wanted);

  HostCounters& counters_;
  LocalNames& names_;
  int epoll_;
  uint32_t slot_ = kMax;
  UniqueFd listener_;
  std::vector<uint32_t> live_;
  uint64_t liveUntil_ = 0;
  std::array<std::unique_ptr<Peer>, kMax> peers_;
};

}  // namespace nd
