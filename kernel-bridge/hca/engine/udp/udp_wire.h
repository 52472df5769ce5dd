// The socket of one address family on UDP port 4791, which the processes on the host share. Packets are staged, sent
// and received in batches. No call blocks.
//
// A packet is copied into the batch when it is staged, because the ICRC must cover exactly the bytes that are sent, but
// the source memory may change meanwhile (for example in a READ of memory that its owner is writing). If the ICRC were
// computed over the original, the peer would drop such packets for as long as the writing continues.
#pragma once
#include <memory>
#include <utility>

#include "base/host_counters.h"
#include "base/icrc.h"
#include "base/packet_link.h"
#include "platform/datagram_socket.h"
#include "udp/udp_flow.h"

namespace nd {

class UdpWire {
 public:
  static constexpr uint32_t kBatch = DatagramsOut::kMostMessages;   // packets staged
  static constexpr uint32_t kStagingBytes = kBatch * kMaxDatagram;  // and their bytes
  static constexpr uint32_t kReceiveBatch =
      DatagramsIn::kMost;  // maximum number of datagrams, or runs of them, received together

  using Datagram = nd::Datagram;  // packets, from BTH to ICRC

  explicit UdpWire(HostCounters& counters) : counters_(counters) {}

  // Binds the family's wildcard address. Returns 0 or an errno: EADDRINUSE or EACCES if another user or driver has the
  // port, EAFNOSUPPORT if the host does not support the family. `first`: fails if any socket has the port already.
  // `inRuns`: the OS may join received packets of a flow. On failure a send-only socket stays open.
  int open(IpFamily family, uint32_t receiveBufferBytes, bool first, bool inRuns = true);
  // Does the same with a socket that is already bound.
  void open(DatagramSocket bound) { use(std::move(bound), false); }
  // Used if another process owns the port exclusively: sends from a port of its own, and receives nothing.
  int openBeside(IpFamily family);
  void close();
  bool isOpen() const { return socket_.isOpen(); }
  bool hears() const { return socket_.isOpen() && !beside_; }
  // The source port of packets that use no flow.
  uint16_t sourcePort() const { return beside_ ? socket_.port() : kRocePort; }
  Descriptor fd() const { return socket_.fd(); }
  DatagramSocket& socket() { return socket_; }

  // ── Sending. stage() returns room for kMaxDatagram bytes (sending the batch first if it is full); commit() adds the
  // packet written there to the batch. `mayRun`: packets of equal length to one QP may be passed to the OS as one
  // message. This is only for destinations on this host. For other hosts the OS segments the message and numbers the
  // IPv4 IDs, which the ICRCs of the packets do not reflect.
  uint8_t* stage();
  void commit(const Path& path, uint32_t length, bool mayRun);
  // Must be called before stage() for a packet of a connection. Chooses the flow of the next committed packet, and
  // returns the values that its ICRC must use. `bth`: at least its first 8 bytes. `length`: that of the whole packet.
  struct Way {
    uint16_t sourcePort = kRocePort, ipv4Id = 0;
  };
  Way prepare(const Path& path, const uint8_t* bth, uint32_t length, bool mayRun);
  // Sends one packet of a connection directly, while the batch is empty, and appends its ICRC (Link::sendSingle).
  // Returns false if nothing was sent.
  bool sendSingle(const Path& path, uint8_t* bth, uint32_t length, bool mayRun);
  // Sends the batch. Returns 0, or the errno of the last packet that could not be sent.
  int flush();

  // ── Receiving: up to kReceiveBatch datagrams, valid until the next call. Returns their number.
  uint32_t receive(uint32_t budget);
  // Does the same with another socket of the same family and options.
  uint32_t receiveFrom(Descriptor fd);
  Datagram datagram(uint32_t index) const;

 private:
  struct Buffers;
  struct BuffersDeleter {
    void operator()(Buffers* buffers) const;
  };
  struct Run {                  // packets in one message
    uint32_t at, count, bytes;  // position in the staging room, packets, total bytes
    uint32_t segment;           // bytes of each packet but the last
    bool open;
    UdpFlow* flow;  // null: the unconnected socket
    uint16_t id;    // IPv4, of the message
    bool checked;   // its ID will be checked
    bool lost;      // not to be sent any more
  };
  void use(DatagramSocket socket, bool beside);
  bool hasRoom() const { return staged_ < kBatch && stagedBytes_ + kMaxDatagram <= kStagingBytes; }
  const Run& runOf(uint32_t index) const;
  bool extendsRun(const Path& path, const UdpFlow* flow, const uint8_t* bth, uint32_t length) const;
  void refused(uint32_t message);
  void full(uint32_t message, int error);
  bool sendOneByOne(uint32_t message, int* lastError);
  HostCounters& counters_;
  DatagramSocket socket_;
  bool beside_ = false;  // socket_ has its own port
  uint32_t staged_ = 0, stagedBytes_ = 0, runs_ = 0;
  uint32_t expected_ = 1;  // datagrams that the next receive() requests
  bool runsWork_ = true;
  UdpFlows flows_;
  UdpFlow* prepared_ = nullptr;   // the flow of the next packet
  bool preparedExtends_ = false;  // whether that packet extends the previous run
  std::unique_ptr<Buffers, BuffersDeleter> buffers_;
};

}  // namespace nd
