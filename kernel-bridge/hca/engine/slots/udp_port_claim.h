// UDP port 4791, and which process of this user has it.
//
// On Linux the processes of one user and one dialect (kDialect) share it. Linux itself would let every process of the
// user join (SO_REUSEPORT), and whoever has joined may have the others' packets. So the first binds the port as if it
// were not to be shared, which fails if anybody has it; the others join only where a name "wire4/<random>",
// "wire6/<random>" says that the port is their dialect's. The name "wire" serializes this. Dialects before the sixth
// join without looking. Their first act is to probe the group (udp/steering.h), which shows them: then all processes of
// this dialect give the port up. The other process has only just begun, and owns no queue pair yet that could take what
// was sent to them.
//
// On Windows processes cannot share the port. One of them has it, and hands the others' datagrams to them, as on Linux
// a process does with datagrams that are not its own. The owner has the name "wire". The others are connected to that
// name and send from ports of their own. When that connection ends, each of them tries to claim the name and the port,
// and is connected to whoever was faster. What lay in the socket of a process that was killed is lost, as packets may
// be: transports repeat it. The owner also joins the multicast groups of the others, who tell it of them by that
// connection.
// The wire is opened at its first need (Host::openWire). With the engine's lock held, except for what says otherwise.
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
  // A socket on the port, as the first or with others: 0 or an errno. Any thread, without the lock.
  virtual int bind(uint32_t receiveBufferBytes, bool first, DatagramSocket* bound) const = 0;
  // Uses it: 0 or an errno, and then all is as before. Beside it: from a port of its own, to send only.
  virtual int open(DatagramSocket bound, uint32_t receiveBufferBytes) = 0;
  virtual int openBeside() = 0;
  virtual void close() = 0;
  virtual bool sends() const = 0;
  virtual bool hears() const = 0;
  // Whether a process of another dialect has probed the port from the port itself since the last call.
  virtual bool wasProbedByOther() = 0;
  // Tells the port's owner, by this connection, which groups of the family this process has joined.
  virtual void tellGroups(Descriptor owner) = 0;

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

  // Where ports are shared: the sockets of both families, which open() uses. Without the lock, since reading the list
  // of names takes a while; by one thread at a time. False: another process is doing the same; call awaitTurn() and
  // then this again. `last`: that is too late, and the port counts as taken.
  struct Bound {
    uint32_t receiveBufferBytes = 0;
    int errors[2] = {};
    DatagramSocket sockets[2];
    UniqueFd names[2];
  };
  bool bind(uint32_t receiveBufferBytes, bool last, Bound* bound);
  // Until that process is done, or has ended; not beyond the deadline. It may come back earlier. Without the lock.
  void awaitTurn(uint64_t deadline);
  void open(Bound bound);
  // Where they are not shared: takes the port, or follows the process that has it.
  void open(uint32_t receiveBufferBytes);
  void close();
  // Gives the port up if a process of another dialect shares it. True: it did.
  bool leaveToOther();
  // Why nobody of this user's processes hears a family: 0, or an errno, as PortSocket::open().
  int problem(IpFamily family) const { return families_[family == IpFamily::kV4 ? 0 : 1].error; }

  // Of the name: other processes connect to it. Whether the host's set reports it.
  Descriptor listener() const { return listener_.get(); }
  void listen(bool on);
  // Tells the owner, if it is another process.
  void tellOwner(const Frame& frame) const {
    if (owner_.valid()) sendFrame(owner_.get(), frame);
  }
  // The process that had the port has ended, or has given it up.
  void onOwnerEnded();
  // When onTime() has something to do.
  uint64_t deadline() const { return due_; }
  void onTime(uint64_t now) {
    if (due_ <= now) take();
  }

 private:
  // After a try that failed: a process that was killed still has the port for a moment, another user for longer.
  static constexpr uint64_t kFirstPauseNs = 1'000'000, kLongestPauseNs = 1'000'000'000;
  struct Family {
    PortSocket& socket;
    const char* names;  // begins those of all who share the port
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
  UniqueFd owner_;     // or this one leads to the process that has it
  uint64_t due_ = UINT64_MAX, pause_ = kFirstPauseNs;
  uint64_t followedAt_ = 0;  // when owner_ was found
};

}  // namespace nd
