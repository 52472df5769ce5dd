// Decides which process of this user has UDP port 4791.
//
// On Linux, the processes of one user and one dialect (kDialect) share the port. Linux itself would let every process
// of the user join (SO_REUSEPORT), and any of them might then receive the others' packets. The first process therefore
// binds the port without sharing it, which fails if any process has it. Other processes join only if a name
// "wire4/<random>" or "wire6/<random>" shows that the port belongs to their dialect. The name "wire" serializes these
// steps. Dialects before the sixth join without checking, but reveal themselves by first probing the group
// (udp/steering.h). All processes of this dialect then release the port. At that time, the process that joined does not
// own any queue pair yet that could receive packets meant for others.
//
// On Windows, where processes cannot share the port, one of them owns both the port and the name "wire". It forwards
// the other processes' datagrams to them, as a process on Linux does with misdirected datagrams. The other processes
// connect to the name and send from separate ports. When the owner ends, and thus their connection, each of them tries
// to claim the name and the port, and connects to the process that was fastest. Datagrams in the socket of a killed
// process are lost like any other packets, and transports retransmit them. The owner also joins the multicast groups
// that the others announce on their connections. The wire is opened on first need (Host::openWire). Requires the
// engine's lock unless stated otherwise.
#pragma once
#include "base/host_counters.h"
#include "base/types.h"
#include "platform/datagram_socket.h"
#include "platform/local_names.h"
#include "platform/readiness.h"
#include "slots/frame.h"

namespace nd {

// The port's socket of one address family.
class PortSocket {
 public:
  // Opens a socket on the port, as the first or together with others. Returns 0 or an errno. Any thread, without the
  // lock.
  virtual int bind(uint32_t receiveBufferBytes, bool first, DatagramSocket* bound) const = 0;
  // Uses the socket. Returns 0 or an errno; on failure nothing has changed. openBeside() opens one on a port of its
  // own, which only sends.
  virtual int open(DatagramSocket bound, uint32_t receiveBufferBytes) = 0;
  virtual int openBeside() = 0;
  virtual void close() = 0;
  virtual bool sends() const = 0;
  virtual bool hears() const = 0;
  // Returns whether a process of another dialect has probed the port from the port itself since the last call.
  virtual bool wasProbedByOther() = 0;
  // Announces to the port's owner, on this connection, which groups of the family this process has joined.
  virtual void announceGroups(Descriptor owner) = 0;

 protected:
  ~PortSocket() = default;
};

class UdpPortClaim {
 public:
  UdpPortClaim(const Clock& clock, HostCounters& counters, LocalNames& names, Readiness& readiness, PortSocket& socket4,
               PortSocket& socket6)
      : clock_(clock),
        counters_(counters),
        names_(names),
        readiness_(readiness),
        families_{{socket4, "wire4/"}, {socket6, "wire6/"}} {}

  // If ports are shared, binds the sockets of both families, for open(). Must be called from one thread at a time,
  // without the lock, since reading the list of names takes a while. Returns false if another process is doing the
  // same; the caller then calls awaitTurn() and this function again. `last`: there is no time for that, so the port
  // counts as taken.
  struct Bound {
    uint32_t receiveBufferBytes = 0;
    int errors[2] = {};
    DatagramSocket sockets[2];
    UniqueFd names[2];
  };
  bool bind(uint32_t receiveBufferBytes, bool last, Bound* bound);
  // Waits until that process is done or has ended, at most until the deadline. May return earlier. Without the lock.
  void awaitTurn(uint64_t deadline);
  void open(Bound bound);
  // If ports are not shared, takes the port, or connects to the process that has it.
  void open(uint32_t receiveBufferBytes);
  void close();
  // Releases the port if a process of another dialect shares it. Returns whether it did.
  bool leaveToOther();
  // Returns why no process of this user receives a family: 0, or an errno as from PortSocket::open().
  int problem(IpFamily family) const { return families_[family == IpFamily::kV4 ? 0 : 1].error; }

  // The listener of the name, to which other processes connect. listen() sets whether the host's set reports it.
  Descriptor listener() const { return listener_.get(); }
  void listen(bool on);
  // Sends the frame to the owner, if that is another process.
  void sendToOwner(const Frame& frame) const {
    if (owner_.valid()) sendFrame(owner_.get(), frame);
  }
  // Called when the process that had the port has ended, or has released it.
  void onOwnerEnded();
  // Returns when onTime() is due.
  uint64_t deadline() const { return due_; }
  void onTime(uint64_t now) {
    if (due_ <= now) take();
  }

 private:
  // The delay after a failed attempt. A killed process still has the port for a moment, another user for longer.
  static constexpr uint64_t kFirstPauseNs = 1'000'000, kLongestPauseNs = 1'000'000'000;
  struct Family {
    PortSocket& socket;
    const char* names;  // prefix of the names of all processes that share the port
    int error = 0;
    UniqueFd name{};
  };
  void share(const Family& family, Bound* bound, size_t index);
  void take();
  bool heardAny() const;
  bool claimName();
  void followOwner();
  void later();

  const Clock& clock_;
  HostCounters& counters_;
  LocalNames& names_;
  Readiness& readiness_;
  Family families_[2];
  uint32_t receiveBufferBytes_ = 0;
  UniqueFd listener_;  // this process has the name
  UniqueFd owner_;     // or this is connected to the process that has it
  uint64_t due_ = UINT64_MAX, pause_ = kFirstPauseNs;
  uint64_t followedAt_ = 0;  // when owner_ was found
};

}  // namespace nd
