// The host side's state; host.cc starts and ends it, host_send.cc and host_receive.cc carry packets.
#pragma once
#include <algorithm>
#include <atomic>
#include <deque>
#include <vector>

#include "base/host_counters.h"
#include "host/capture.h"
#include "host/faults.h"
#include "host/gsi.h"
#include "host/host.h"
#include "local/local_pairs.h"
#include "platform/local_addresses.h"
#include "slots/ports.h"
#include "slots/slots.h"
#include "udp/raw_wire.h"
#include "udp/steering.h"
#include "udp/udp_inlet.h"
#include "udp/udp_wire.h"

namespace nd {

// A packet's bytes in one piece, BTH to pad; their number, 0 for one that may not be sent.
uint32_t gather(uint8_t* out, const OutPacket& packet);
uint32_t checkedLength(const OutPacket& packet);

struct Host::Impl {
  struct Wire {
    Wire(HostCounters& c, int f) : family(f), udp(c), raw(c), inlets(c, f), steering(c, &Impl::sendProbe, this) {}
    int family;
    UdpWire udp;
    RawWire raw;                   // IPv4, where ICRCs are checked exactly
    UdpInlets inlets;
    UdpInlet* turn = nullptr;      // where packets came from last; null: the socket that hears everybody
    UdpInlet* wanted = nullptr;    // to be opened
    struct Early {
      UdpWire::Datagram datagram;
      std::vector<uint8_t> bytes;
    };
    std::vector<Early> early;      // what came by an inlet while it was opened, and goes after the other socket's
    uint32_t receiveBufferBytes = 0;
    Steering steering;
    IcrcStart sent, received;      // of the last packets
    CountedIds ids;                // of the last sender whose IPv4 IDs are not 0
  };
  // A packet that others overtake (fault layer).
  struct Held {
    uint32_t packetsToGo = 0;      // 0: none is held
    uint64_t due = UINT64_MAX;
    Wire* wire = nullptr;          // null: a packet without a wire
    Path path;
    std::shared_ptr<LocalPair> pair;  // or by this
    std::vector<uint8_t> bytes;
  };
  // Captures what comes by pairs on which whole packets travel.
  struct PlainSink final : PacketSink {
    explicit PlainSink(Impl& h) : host(h) {}
    Impl& host;
    void onPacket(const PacketMeta&, const uint8_t*, uint32_t) override {}
    void onPeerProcessGone(uint32_t, bool) override {}
    void onPlainPacket(LocalPair& pair, const PacketMeta& meta, const uint8_t* bth, uint32_t length) override;
  };

  // What came past the wire and may end connections, a handed-over message or a departure: packets that were sent
  // before it can still lie in the sockets, and go first. Never kept from one poll to the next.
  struct Deferred {
    std::vector<uint8_t> frame;    // empty: a departure
    uint32_t slot = 0;
    bool orderly = false;
  };
  static constexpr uint32_t kInlets6 = 1 << 8;  // of an inlet's number in the epoll set: it is one for IPv6
  static constexpr uint32_t kMaxDrained = 16384;  // packets: what the sockets' buffers can hold; more came later

  explicit Impl(const Clock& c);

  const Clock& clock;
  HostCounters counters;
  UniqueFd epoll;
  UniqueFd localWake;
  LocalNames names;
  Inbound inbound{counters, names, epoll.get()};
  Slots slots{counters, names, epoll.get()};
  Ports ports{names, epoll.get()};
  Gsi gsi{clock, counters, ports, slots};
  Faults faults;
  Capture capture;
  LocalAddresses addresses;
  LocalPairs pairs{counters, slots, epoll.get()};
  PlainSink plainSink{*this};
  bool localLink = false;          // option: what can go by it goes by it
  // While pairs are up, between looks at the sockets that find nothing.
  static constexpr uint64_t kFirstLookGapNs = 500, kLongestLookGapNs = 20'000;
  static constexpr uint64_t kCopyLookGapNs = 80'000;  // between steps that copy much: some 20 µs each
  uint64_t lookDue = 0, lookGap = 0;
  bool lookAll = false;            // the next look
  std::vector<Sleeper*> sleepers;
  struct Joined {
    Gid group;
    uint32_t interface;
  };
  std::vector<Joined> joined;      // multicast groups
  Wire wire4{counters, AF_INET}, wire6{counters, AF_INET6};
  Wire* busyWire = nullptr;        // where packets came from last
  uint32_t pollsWithoutLook = 0;   // at all descriptors
  // At where packets came last, by who waits, after one at all descriptors: the more, the longer nothing has come by others.
  static constexpr uint32_t kMostMoreLooks = 7;
  uint32_t moreLooks = 0;
  uint32_t rawBatches = 0;         // since the UDP socket beside it was looked at
  Engine* engine = nullptr;
  PacketSink* sink = nullptr;      // during poll()
  std::deque<std::vector<uint8_t>> localQueue;  // frames
  bool localRung = false;  // localWake says that there are some
  bool carriesOn = false;  // who queues takes them out himself, at once
  Held held;
  // Listeners that nobody watches until listenDue: there is a connection for which the system has no descriptor.
  static constexpr uint64_t kListenAgainNs = 100'000'000;
  std::vector<uint64_t> deaf;      // as the epoll set names them
  uint64_t listenDue = UINT64_MAX;
  uint64_t rareDue = UINT64_MAX;   // the earlier of held.due and listenDue
  std::deque<Deferred> deferred;
  Gid lastDestination;             // and whether it was one of this host; looked up again now and then
  bool lastDestinationLocal = false;
  uint32_t lastDestinationUses = 0;
  std::string problem;
  uint32_t madPsn = 0;
  std::atomic<bool> started{false};
  bool wired = false;              // at start; read by any thread

  Wire& wireTo(const Gid& address) { return address.isV4() ? wire4 : wire6; }

  // ── Out
  void transmitFaulty(Wire& wire, const Path& path, uint8_t* bytes, uint32_t length);
  void commit(Wire& wire, const Path& path, const uint8_t* bytes, uint32_t length);
  bool takes(const PacketMeta& meta);
  bool staysHere(const Gid& destination);
  // By a pair; without one, by the slots' connections.
  void transmitLocal(LocalPair* pair, const Path& path, uint8_t* bytes, uint32_t length);
  void carryLocal(LocalPair* pair, const Path& path, const uint8_t* bytes, uint32_t length);
  bool hold(Wire* wire, LocalPair* pair, const Path& path, const uint8_t* bytes, uint32_t length, uint32_t packets);
  bool staysOffTheWire(const Path& path, const OutPacket& packet);
  void startLocalLink(const HostOptions& options);
  void seePackets();
  void dueChanged() { rareDue = std::min(held.due, listenDue); }
  void overtakeHeld();
  void releaseHeld();
  bool isDropped(const Faults::Fate& fate);
  void captureOut(const Path& path, const uint8_t* bytes, uint32_t length);
  void captureOut(const Path& path, const IcrcHeaders& headers, const uint8_t* bytes, uint32_t length);
  void sendToOthers(const Frame& frame);
  void queueLocal(const Frame& frame);
  void ringLocal();
  void silenceLocal();
  std::unique_lock<EngineLock> holdIfStarted();
  static void sendProbe(void* wire, const SteeringProbe& probe);

  // ── In
  uint32_t receiveFrom(Wire& wire, uint32_t budget);  // by the socket that is busy
  uint32_t receiveAgain(uint32_t budget);
  uint32_t receiveByUdp(Wire& wire, uint32_t budget, uint32_t* datagrams = nullptr);
  uint32_t receiveBy(Wire& wire, UdpInlet& inlet, uint32_t budget);
  bool takeAlone(Wire& wire, UdpInlet& inlet);
  uint32_t drainInlets();
  uint32_t take(Wire& wire, const UdpWire::Datagram& datagram, UdpInlet* by);
  void hear(Wire& wire, const UdpWire::Datagram& datagram);
  uint32_t openInlet(Wire& wire);
  uint32_t drainUdp(Wire& wire);
  uint32_t takeEarly(Wire& wire);
  bool divide(Wire& wire, UdpInlet& inlet, UdpWire::Datagram* datagram);
  void closeWire(Wire& wire);
  uint32_t receiveRaw(Wire& wire, uint32_t budget);
  void drainRaw();
  bool comesByRaw(const Frame& frame, uint32_t qpn);
  bool vouchedFor(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  void onDatagram(Wire& wire, const UdpWire::Datagram& datagram, UdpInlet* by, const uint8_t* bth, uint32_t whole, bool taken);
  void onProbe(Wire& wire, const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  void onFrame(const Frame& frame, FrameOrigin& origin);
  void deliver(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length,
               const uint8_t* icrc);
  void captureIn(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length,
                 const uint8_t* icrc);
  void drainPairs();
  void looked(uint64_t now, bool found);
  bool anyAsleep() const;
  void tellSleepers();
  uint32_t drainLocalQueue(uint32_t budget);
  uint32_t deliverDeferred();
  static bool endsConnection(const Deferred& what);
  uint32_t drainSockets();
  void onOutbound(uint32_t slot, uint32_t events);
  uint32_t lookAtAll(uint32_t budget);
  void stopListening(uint64_t tag);
  void listenAgain();
  void hear(uint64_t tag, bool on);
  void turnTo(Wire& wire, UdpInlet* inlet);
  uint64_t nextDeadline() const;
  void runTimers();

  int openRaw(const HostOptions& options);
  void openWire(Wire& wire, uint32_t receiveBufferBytes);
};

}  // namespace nd
