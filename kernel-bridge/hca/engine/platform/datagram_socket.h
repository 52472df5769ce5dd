// UDP sockets as RoCEv2 uses them. Datagrams are sent and received in batches, with the fields of their IP headers. No
// call blocks.
#pragma once
#include <cstdint>
#include <memory>

#include "base/types.h"
#include "platform/unique_fd.h"

namespace nd {

// One datagram, or several from one sender that the OS delivers in one piece.
struct Datagram {
  PacketMeta meta;
  const uint8_t* bytes = nullptr;
  uint32_t length = 0;   // length of all datagrams together
  uint32_t segment = 0;  // length of each datagram but the last
  uint16_t sourcePort = 0;
  bool complete = false;    // false: truncated, or the addresses are unknown
  bool hasMetadata = true;  // false: only the bytes are known (receiveBytes)
};

// A rule that chooses among sockets that share a port, each of which has an index. A datagram goes to the socket whose
// index is assigned to the value of its byte `at`.
struct SharingRule {
  static constexpr uint8_t kNoIndex = 0xff;  // index of a value: the OS chooses
  uint32_t at = 0;
  const uint8_t* indexes = nullptr;  // the index for each value
  uint32_t values = 0;
  uint8_t direct = 0;  // if the byte `at` has this value, the byte `directAt` is itself the index
  uint32_t directAt = 0;
};
// Applies the rule to all sockets that share this one's port. If the OS does not support the rule, it chooses the
// sockets itself.
void setSharingRule(Descriptor socket, const SharingRule& rule);

// Returns whether sockets of several processes of one user can share a port. Otherwise one process owns it.
bool portsAreShared();

class DatagramSocket {
 public:
  static constexpr int kDefaultHopLimit = 64;

  // ── Opening. Returns 0 or an errno; on failure the socket stays closed.
  // Binds to a port on all addresses of the family, to send to and receive from any host. Sockets of one user can share
  // the port. IPv4 datagrams have ID 0 and are not fragmented. `joined`: received datagrams may be joined. `first`:
  // fails with EADDRINUSE if another socket has the port; others may share it afterwards.
  int openShared(IpFamily family, uint16_t port, uint32_t bufferBytes, bool joined, bool first);
  // Opens a socket that sends like such a socket, but from a port of its own, while another process owns the RoCEv2
  // port. Datagrams received on it are ignored.
  int openBeside(IpFamily family, uint32_t bufferBytes);
  // Opens a socket that receives from a single sender on such a port. Until hearOnly() is called, it is the last of the
  // sockets that share the port, may receive from other senders too, and reports destinations. hearOnly() returns false
  // if the socket does not receive this sender's datagrams to `own`.
  int openListener(IpFamily family, uint16_t port, uint32_t bufferBytes);
  bool hearOnly(const Gid& sender, uint16_t senderPort, const Gid& own);
  void reportDestinations(bool on);
  // Opens a socket that sends from a port of its own to a single destination, with the path's header fields.
  int openSender(const Path& path, uint16_t port, uint32_t bufferBytes);
  void close() { fd_.reset(); }

  bool isOpen() const { return fd_.valid(); }
  Descriptor fd() const { return fd_.get(); }  // readable when a datagram is available
  IpFamily family() const { return family_; }
  bool labels() const { return labels_; }  // whether it sends flow labels
  uint16_t port() const { return port_; }  // the port of a socket that does not share one

  // Joins or leaves a multicast group on one interface. Returns 0 or an errno: ENODEV if there is no such interface,
  // ENOBUFS at the OS limit (net.ipv4.igmp_max_memberships for each socket).
  int changeGroup(bool join, const Gid& group, uint32_t interface);
  // Return the maximum number of datagrams that it can hold, and whether it holds any.
  uint32_t queuedAtMost() const;
  bool hasDatagram() const;

  // ── Of a connected sender.
  // Sends one datagram, without a batch. Returns 0 or an errno.
  int send(const void* bytes, uint32_t length) const;
  // The OS counts the IPv4 IDs of a sender. This call sends an empty datagram and stores its ID. Returns false if the
  // OS does not reveal the ID.
  bool learnId(const Path& path, uint16_t* id) const;
  // Returns the ID of the last sent message for which requestId() was called.
  bool takeId(const Path& path, uint16_t* id) const;

 private:
  int use(UniqueFd fd, IpFamily family);

  UniqueFd fd_;
  IpFamily family_ = IpFamily::kV4;
  bool labels_ = false;
  uint16_t port_ = 0;
};

// A batch of messages that are sent together. Their bytes belong to the caller and must stay valid until they have been
// sent.
class DatagramsOut {
 public:
  static constexpr uint32_t kMostMessages = 32;
  DatagramsOut();
  ~DatagramsOut();
  DatagramsOut(const DatagramsOut&) = delete;
  DatagramsOut& operator=(const DatagramsOut&) = delete;

  // Sets a message for a connected sender's socket.
  void set(uint32_t index, const uint8_t* bytes, uint32_t length);
  // Sets a message for an unconnected socket: `by`, or another of the same kind.
  void set(uint32_t index, const uint8_t* bytes, uint32_t length, const Path& path, uint16_t port,
           const DatagramSocket& by);
  // Requests the ID of the message, which takeId() will return.
  void requestId(uint32_t index);
  // The message has `length` bytes and is sent as datagrams of `segment` bytes, of which the last may be shorter. Call
  // this only once.
  void cutUp(uint32_t index, uint32_t length, uint32_t segment);
  // Makes the message a single datagram of these bytes after all.
  void setSingle(uint32_t index, const uint8_t* bytes, uint32_t length);
  // Removes the flow label of the message. Returns false if it had none.
  bool dropLabel(uint32_t index);
  // Returns the number of messages sent, or a negative errno if none was sent.
  int send(Descriptor by, uint32_t first, uint32_t count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Buffers for datagrams that are received together.
class DatagramsIn {
 public:
  static constexpr uint32_t kMost = 16, kBytes = 65536;
  static constexpr uint32_t kFront = 64;  // writable bytes before the first one
  // `senders`: reports the sender of each datagram. Otherwise the sender is known or irrelevant.
  explicit DatagramsIn(bool senders);
  ~DatagramsIn();
  DatagramsIn(const DatagramsIn&) = delete;
  DatagramsIn& operator=(const DatagramsIn&) = delete;

  // Receives up to `count` datagrams, which are valid until the next call. Returns their number.
  uint32_t receive(Descriptor from, uint32_t count);
  // Receives only the bytes of one datagram, which is cheaper. Returns false if none is available.
  bool receiveBytes(Descriptor from);
  uint8_t* bytes(uint32_t index);
  uint32_t length(uint32_t index) const;
  Datagram datagram(uint32_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd
