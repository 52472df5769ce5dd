// UDP sockets as RoCEv2 uses them: datagrams come and go in batches, with the fields of their IP headers. Nothing here
// waits.
#pragma once
#include <cstdint>
#include <memory>

#include "base/types.h"
#include "platform/unique_fd.h"

namespace nd {

// One datagram, or several of the same sender that the system delivers in one piece.
struct Datagram {
  PacketMeta meta;
  const uint8_t* bytes = nullptr;
  uint32_t length = 0;   // of all
  uint32_t segment = 0;  // of each but the last
  uint16_t sourcePort = 0;
  bool complete = false;    // false: cut off, or its addresses are not known
  bool hasMetadata = true;  // false: only the bytes are known (receiveBytes)
};

// Of sockets that share a port, each has an index. Where the byte `at` of a datagram has a value with an index, the
// socket of that index gets it.
struct SharingRule {
  static constexpr uint8_t kNoIndex = 0xff;  // of a value: the system chooses
  uint32_t at = 0;
  const uint8_t* indexes = nullptr;  // by value
  uint32_t values = 0;
  uint8_t direct = 0;  // where the byte `at` is this one, the byte `directAt` is the index itself
  uint32_t directAt = 0;
};
// For all sockets that share this one's port. Where the system refuses, it chooses itself.
void setSharingRule(Descriptor socket, const SharingRule& rule);

// Whether sockets of several processes of one user can have a port together. Else one process has it.
bool portsAreShared();

class DatagramSocket {
 public:
  static constexpr int kDefaultHopLimit = 64;

  // ── Opening. One that fails leaves the socket closed. 0 or an errno.
  // Bound to a port at all addresses of the family, to send to anybody and hear everybody. Sockets of one user can
  // share the port. What it sends by IPv4 has ID 0 and is not cut up. `joined`: datagrams may come joined. `first`:
  // EADDRINUSE if anybody has the port; others may share it afterwards.
  int openShared(IpFamily family, uint16_t port, uint32_t bufferBytes, bool joined, bool first);
  // To send as such a socket does, beside the process that has the port, from a port of its own. What comes there is
  // not for anybody.
  int openBeside(IpFamily family, uint32_t bufferBytes);
  // To hear a single sender on such a port. Until hearOnly() it is the last of the sockets that share the port, may
  // hear others, too, and reports destinations. hearOnly() is false where it does not hear what this sender sends to
  // `own`.
  int openListener(IpFamily family, uint16_t port, uint32_t bufferBytes);
  bool hearOnly(const Gid& sender, uint16_t senderPort, const Gid& own);
  void reportDestinations(bool on);
  // From a port of its own to a single destination, with the path's header fields.
  int openSender(const Path& path, uint16_t port, uint32_t bufferBytes);
  void close() { fd_.reset(); }

  bool isOpen() const { return fd_.valid(); }
  Descriptor fd() const { return fd_.get(); }  // readable when there is a datagram
  IpFamily family() const { return family_; }
  bool labels() const { return labels_; }  // it sends flow labels
  uint16_t port() const { return port_; }  // of one that does not share a port: its own

  // Joins or leaves a multicast group on one interface. 0 or an errno: ENODEV: no such interface; ENOBUFS: the
  // system's limit (net.ipv4.igmp_max_memberships for each socket).
  int changeGroup(bool join, const Gid& group, uint32_t interface);
  // How many datagrams it holds at most; whether there is one.
  uint32_t queuedAtMost() const;
  bool hasDatagram() const;

  // ── A sender's.
  // One datagram, without a batch. 0 or an errno.
  int send(const void* bytes, uint32_t length) const;
  // The system counts the IPv4 IDs of a sender. The ID of an empty datagram that this sends; false: the system keeps it
  // secret.
  bool learnId(const Path& path, uint16_t* id) const;
  // The ID of the last that has left of the messages with askForId().
  bool takeId(const Path& path, uint16_t* id) const;

 private:
  int use(UniqueFd fd, IpFamily family);

  UniqueFd fd_;
  IpFamily family_ = IpFamily::kV4;
  bool labels_ = false;
  uint16_t port_ = 0;
};

// Messages that leave together. Their bytes are the caller's, and stay until they have left.
class DatagramsOut {
 public:
  static constexpr uint32_t kMostMessages = 32;
  DatagramsOut();
  ~DatagramsOut();
  DatagramsOut(const DatagramsOut&) = delete;
  DatagramsOut& operator=(const DatagramsOut&) = delete;

  // By a sender's socket.
  void set(uint32_t index, const uint8_t* bytes, uint32_t length);
  // By another, of which this is one.
  void set(uint32_t index, const uint8_t* bytes, uint32_t length, const Path& path, uint16_t port,
           const DatagramSocket& by);
  // takeId() answers its ID.
  void askForId(uint32_t index);
  // It has so many bytes, and leaves as datagrams of `segment` bytes, the last of which may be shorter. Once.
  void cutUp(uint32_t index, uint32_t length, uint32_t segment);
  // It is one datagram of these bytes, after all.
  void setSingle(uint32_t index, const uint8_t* bytes, uint32_t length);
  // Goes without a flow label. False: it had none.
  bool dropLabel(uint32_t index);
  // How many have left; an errno, negative: none has, for this.
  int send(Descriptor by, uint32_t first, uint32_t count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Room for datagrams that come together.
class DatagramsIn {
 public:
  static constexpr uint32_t kMost = 16, kBytes = 65536;
  static constexpr uint32_t kFront = 64;  // bytes before the first that the caller may write to
  // `senders`: the sender of each is reported. Else it is known, or of no interest.
  explicit DatagramsIn(bool senders);
  ~DatagramsIn();
  DatagramsIn(const DatagramsIn&) = delete;
  DatagramsIn& operator=(const DatagramsIn&) = delete;

  // Takes up to `count`, valid until the next call. Their number.
  uint32_t receive(Descriptor from, uint32_t count);
  // Takes one, of which only the bytes are known; cheaper. False: there is none.
  bool receiveBytes(Descriptor from);
  uint8_t* bytes(uint32_t index);
  uint32_t length(uint32_t index) const;
  Datagram datagram(uint32_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd
