// Tests a process of this user that owns its slot and sends arbitrary data: frames of every kind on the connections of
// slots, and any words in the memory that it shares with this process. The process may end its own pair and its own
// connection. A bystander's connection, memory that the process has no right to, and descriptors are unaffected.
// `host_hostile [seed [frames]]` repeats a run.
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <cinttypes>

#include "base/packet_headers.h"
#include "host_impostor.h"
#include "world_net.h"

using namespace hosttest;
using world::Random;

namespace {

constexpr uint32_t kOwnSlot = 0, kVictimSlot = 1;
constexpr uint8_t kUntouched = 0xC5;
constexpr uint32_t kFramesOfOne = 200, kFrames = 6000;  // frames of one process, and of all
constexpr uint32_t kEntriesOfOne = 100;                 // entries that it writes into its ring
constexpr uint32_t kOwnQpn = kOwnSlot << 16 | 5;        // the number of a queue pair that does not exist
constexpr unsigned kLifeSeconds = 60;                   // a process that takes longer hangs
constexpr auto kFirstKind = static_cast<uint32_t>(FrameKind::kPacket),
               kLastKind = static_cast<uint32_t>(FrameKind::kPortReply);

UniqueFd event() { return UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

// Counts open descriptors, but not while the engine's thread is working, because it may have opened one. Sockets of the
// network are not counted, because they come and go with the traffic (peer_socket.h).
int descriptors() {
  const auto hold = hca().engine()->hold();
  int n = 0;
  for (int fd = 0; fd < 512; fd++) {
    int domain = AF_UNSPEC;
    socklen_t bytes = sizeof domain;
    if (fcntl(fd, F_GETFD) < 0 || (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain != AF_UNIX))
      continue;
    n++;
  }
  return n;
}

// ── The impostor's process ────────────────────────────────────────────────────────────────────────

// What the impostor knows of the victim: the queue pair that expects a peer, and memory that this queue pair may not
// use.
struct Knowledge {
  Hello target;
  uint64_t foreignAddress;
  uint32_t foreignKey;
};

struct What {
  uint32_t frames = 0, refused = 0, entries = 0;
};

class Hostile {
 public:
  Hostile(Random& random, Impostor& impostor) : r_(random), impostor_(impostor) {
    HOST_CHECK(mapping_.create(&memory_));
  }
  void learn(const Knowledge& knowledge) { knows_ = knowledge; }

  // Sets the pair up in order, so that the ring can be written. False: the victim accepts no offer.
  bool pairUp() {
    impostor_.say(kVictimSlot, FrameKind::kPairOffer, LocalHello::kYes, {memory_.get(), own_.get(), theirs_.get()});
    LocalHello answer;
    return impostor_.hears(FrameKind::kPairReply, &answer) && answer.reason == LocalHello::kYes;
  }
  // Sends one frame that is nearly valid or entirely invalid.
  void frame() {
    uint8_t bytes[Frame::kMaxBytes + 64] = {};
    Frame f;
    f.kind = static_cast<FrameKind>(kFirstKind + r_.below(kLastKind - kFirstKind + 2));
    f.meta.source = f.meta.destination = loopback();
    if (r_.below(6) == 0) f.meta.source.raw[r_.below(16)] = uint8_t(r_.next());
    if (r_.below(6) == 0) f.meta.destination.raw[r_.below(16)] = uint8_t(r_.next());
    f.meta.scopeId = r_.below(3);
    f.meta.sender = r_.below(4) == 0 ? r_.below(300) : kOwnSlot;
    f.encodeHeader(bytes);
    uint32_t length = body(f.kind, bytes + Frame::kHeaderBytes);
    if (r_.below(16) == 0) length = r_.below(length + 64);
    if (r_.below(200) == 0) bytes[r_.below(4)] = uint8_t(r_.next());
    what.frames++;
    if (!send(bytes, Frame::kHeaderBytes + length, descriptorsFor(f.kind))) what.refused++;
  }
  // Writes some entries of the ring, in order (valid, nearly valid, noise), and what the sides report to each other.
  void entry() {
    LocalSegment* const segment = mapping_.get();
    LocalRing& out = segment->rings[0];
    uint8_t bytes[LocalRing::kEntryBytes] = {};
    const uint32_t used = r_.below(8) == 0 ? noise(bytes) : r_.below(2) == 0 ? nearly(bytes) : right(bytes);
    const uint32_t slots = LocalRing::slotsFor(used);
    for (uint32_t i = slots; i-- > 0;) {
      LocalRing::Slot& slot = out.slots[(at_ + i) % LocalRing::kSlots];
      std::memcpy(slot.body, bytes + i * LocalRing::kSlotBody, LocalRing::kSlotBody);
      __atomic_store_n(&slot.sequence, r_.below(100) ? at_ + i + 1 : r_.next(), __ATOMIC_RELEASE);
    }
    at_ += slots;
    what.entries++;
    if (r_.below(16) == 0) {
      auto* const words = reinterpret_cast<uint32_t*>(&segment->sides[r_.below(2)]);
      __atomic_store_n(words + r_.below(sizeof(LocalSide) / 4), r_.below(2) ? r_.next() : r_.below(4),
                       __ATOMIC_RELAXED);
    }
    if (r_.below(16) == 0)
      out.slots[r_.below(LocalRing::kSlots)].body[r_.below(LocalRing::kSlotBody)] = uint8_t(r_.next());
    if (r_.below(64) == 0) __atomic_store_n(&segment->state, r_.below(4), __ATOMIC_RELAXED);
    if (eventfd_write(theirs_.get(), 1) != 0) HOST_CHECK(errno == EAGAIN);
    if (r_.below(8) == 0) usleep(50);
  }

  What what;

 private:
  // Creates a packet for the target's queue pair, as its peer would send it. Now and then a few fields are random.
  uint32_t packet(uint8_t* to) {
    wire::Bth bth;
    bth.opcode = uint8_t(r_.below(4) ? r_.below(0x18) : r_.next());
    bth.destinationQpn = r_.below(6) ? knows_.target.qpn : r_.below(4) ? 1 : r_.next() & wire::kQpnMask;
    bth.psn = r_.below(4) ? psn_++ : r_.below(4) ? r_.below(8) : r_.next() & wire::kPsnMask;
    bth.ackRequest = r_.below(2);
    bth.pad = uint8_t(r_.below(8) ? 0 : r_.below(4));
    wire::emitBth(to, bth);
    const uint32_t length = wire::kBthBytes + 4 * r_.below(r_.below(4) ? 20 : 1000);
    for (uint32_t i = wire::kBthBytes; i < length; i++) to[i] = uint8_t(r_.next());
    if (r_.below(2) && length >= wire::kBthBytes + wire::kRethBytes)
      wire::emitReth(to + wire::kBthBytes, reth(r_.below(4) ? r_.below(4096) : r_.next()));
    return length;
  }
  // Returns an address around either limit of the target's registered memory, or in memory of another protection
  // domain.
  wire::Reth reth(uint32_t length) {
    if (r_.below(4) == 0) return {knows_.foreignAddress + r_.below(kBytes), knows_.foreignKey, length};
    const uint64_t around = r_.below(2) ? knows_.target.address - 64 : knows_.target.address + kBytes - 64;
    return {around + r_.below(128), r_.below(8) ? knows_.target.rkey : r_.next(), length};
  }
  uint32_t body(FrameKind kind, uint8_t* to) {
    switch (kind) {
      case FrameKind::kPairRequest:
      case FrameKind::kPairOffer:
      case FrameKind::kPairReply: {
        LocalHello hello;
        hello.slot = r_.below(4) ? kOwnSlot : r_.below(300);
        hello.reason = r_.below(4) ? LocalHello::kYes : r_.next() % 8;
        std::memcpy(to, &hello, sizeof hello);
        return sizeof hello;
      }
      case FrameKind::kMemoryOffer:
      case FrameKind::kMemoryReply:
      case FrameKind::kMemoryGone: {
        LocalMemory m;
        m.slot = r_.below(4) ? kOwnSlot : r_.below(300);
        m.number = r_.below(4) ? r_.below(200) : r_.next();
        m.base = uint64_t(r_.next()) << r_.below(32);
        m.length = r_.below(2) ? 4096 : uint64_t(r_.next()) << r_.below(32);
        m.mapped = r_.below(3);
        std::memcpy(to, &m, sizeof m);
        return sizeof m;
      }
      case FrameKind::kPacket:
      case FrameKind::kMad:
      case FrameKind::kStray: return packet(to);
      default: {
        const uint32_t length = 4 * r_.below(16);
        for (uint32_t i = 0; i < length; i++) to[i] = uint8_t(r_.next());
        return length;
      }
    }
  }
  std::vector<int> descriptorsFor(FrameKind kind) {
    const int any[] = {memory_.get(), own_.get(), theirs_.get(), 0};
    if (kind == FrameKind::kPairOffer && r_.below(2)) return {any[0], any[1], any[2]};
    std::vector<int> fds;
    if (r_.below(4) == 0)
      for (uint32_t n = r_.below(4); n > 0; n--) fds.push_back(any[r_.below(4)]);
    return fds;
  }
  // False: the victim has closed the connection, as it may after an invalid frame.
  bool send(const uint8_t* bytes, size_t length, const std::vector<int>& fds) {
    ProcessId pid;
    UniqueFd& out = impostor_.out;
    if (!out.valid()) {
      HOST_CHECK(connectLocal(nd::ownName("slot/") + std::to_string(kVictimSlot), &out, &pid) == 0);
      HOST_CHECK(fcntl(out.get(), F_SETFL, 0) == 0);  // the socket blocks, so the victim reads at its own pace
    }
    iovec piece = {const_cast<uint8_t*>(bytes), length};
    if (sendBytes(out.get(), &piece, 1, fds)) return true;
    out.reset();
    return false;
  }
  uint32_t noise(uint8_t* entry) {
    for (uint32_t i = 0; i < LocalRing::kEntryBytes; i++) entry[i] = uint8_t(r_.next());
    return 1 + r_.below(LocalRing::kEntryBytes);
  }
  uint32_t head(uint8_t* entry, uint32_t length, LocalKind kind, uint32_t flags, uint32_t third) {
    const uint32_t words[] = {LocalEntry::word(length, kind, flags), kOwnQpn, third};
    std::memcpy(entry, words, sizeof words);
    return sizeof words;
  }
  uint32_t nearly(uint8_t* entry) {
    uint8_t bytes[Frame::kMaxBytes];
    packet(bytes);
    const uint32_t length = r_.below(4) ? r_.below(200) : r_.next() & 0xFFFFF;
    const auto kind = static_cast<LocalKind>(r_.below(8) ? 1 + r_.below(5) : r_.below(16));
    const uint32_t at =
        head(entry, length, kind, r_.below(4) ? 0 : r_.below(16), r_.below(2) ? 0 : r_.next() & 0x1FFFFFF);
    std::memcpy(entry + at, bytes, LocalRing::kEntryBytes - at);
    return 1 + r_.below(LocalRing::kEntryBytes);
  }
  // Writes the next SEND or WRITE for the target, a small one. Only its memory may be wrong.
  uint32_t right(uint8_t* entry) {
    wire::Bth bth;
    bth.opcode = r_.below(3) ? wire::kOpWriteOnly : wire::kOpSendOnly;
    bth.destinationQpn = knows_.target.qpn;
    bth.psn = psn_++;
    bth.ackRequest = r_.below(2);
    const uint32_t length = 4 * r_.below(LocalSmall::kMostInEntry / 4);
    uint32_t at = head(entry, length, LocalKind::kInline, 0, 0);
    wire::emitBth(entry + at, bth);
    at += wire::kBthBytes;
    if (bth.opcode == wire::kOpWriteOnly) {
      wire::Reth r = reth(length);
      if (r_.below(4)) r = {knows_.target.address + r_.below(kBytes / 2), knows_.target.rkey, length};
      wire::emitReth(entry + at, r);
      at += wire::kRethBytes;
    }
    return at + length;
  }

  Random& r_;
  Impostor& impostor_;
  Knowledge knows_{};
  UniqueFd memory_, own_ = event(), theirs_ = event();
  LocalMapping mapping_;
  uint32_t at_ = 0, psn_ = 0;
};

// "impostor <seed> <frames> <foreign address> <foreign key>": runs like a Peer, and reports what it has sent.
int impostorMain(const std::string& words) {
  alarm(kLifeSeconds);
  uint64_t seed = 0;
  uint32_t frames = 0;
  Knowledge knowledge{};
  if (std::sscanf(words.c_str(), "impostor %" SCNu64 " %u %" SCNu64 " %u", &seed, &frames, &knowledge.foreignAddress,
                  &knowledge.foreignKey) != 4)
    return 2;
  Random r(seed);
  Impostor impostor(kOwnSlot);
  const Hello own = {kOwnQpn, 1, 4096};
  if (write(1, &own, sizeof own) != sizeof own) return 2;
  char how;
  if (read(0, &knowledge.target, sizeof knowledge.target) != sizeof knowledge.target || read(0, &how, 1) != 1) return 2;
  Hostile hostile(r, impostor);
  hostile.learn(knowledge);
  if (write(1, &how, 1) != 1) return 2;
  // Every third impostor leaves the setup of the pair to chance.
  const bool up = r.below(3) != 0 && hostile.pairUp();
  for (uint32_t n = 0, entries = 0; n < frames; n++) {
    hostile.frame();
    while (up && entries * frames < kEntriesOfOne * n) hostile.entry(), entries++;
  }
  if (write(1, &hostile.what, sizeof hostile.what) != sizeof hostile.what) return 2;
  return hosttest::failures;  // and its end is the last that it does
}

// ── The victim's process ──────────────────────────────────────────────────────────────────────────

// The bystanders' connection transfers what it should.
void lives(Side& side, const Peer& peer, uint32_t round) {
  for (uint32_t i = 0; i < 4096; i++) side.memory[i] = uint8_t(round * 31 + i * 7);
  side.post(kOpWrite, 0, 4096, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.waited() == kWcSuccess);
  side.post(kOpRead, 8192, 4096, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.waited() == kWcSuccess);
  HOST_CHECK(std::memcmp(&side.memory[0], &side.memory[8192], 4096) == 0);
}

bool hasWord(int fd) {
  pollfd waits{fd, POLLIN, 0};
  return ::poll(&waits, 1, 0) == 1;
}

bool untouched(Registered& memory, uint32_t from) {
  for (uint32_t i = from; i < kBytes; i++)
    if (memory[i] != kUntouched) return false;
  return true;
}

int victimMain(uint64_t seed, uint32_t frames) {
  // Takes the lower slot's name before this process has a slot, so that this slot is always left to an impostor.
  UniqueFd held;
  HOST_CHECK(listenLocal(nd::ownName("slot/") + std::to_string(kOwnSlot), &held) == 0);
  startProcess();
  HOST_CHECK(hca().host().slot() == kVictimSlot);
  Side bystander, foreign;
  Peer peer;
  peer.connect(bystander, kRest);
  std::memset(foreign.memory.data(), kUntouched, kBytes);
  std::memset(bystander.memory.data(), kUntouched, kBytes);
  lives(bystander, peer, 0);
  held.reset();
  const int before = descriptors();
  What sum;
  uint64_t gone = hostCounter("slot_peers_gone");
  const uint64_t end = clockNow() + kTimeoutNs;
  for (uint32_t round = 1; sum.frames < frames && hosttest::failures == 0; round++) {
    Side target;
    const std::string words = "impostor " + std::to_string(seed * 1000 + round) + " " +
                              std::to_string(std::min(kFramesOfOne, frames - sum.frames)) + " " +
                              std::to_string(foreign.hello().address) + " " + std::to_string(foreign.rkey);
    Peer impostor(words.c_str());
    target.connect(impostor.hello, 4096);
    for (uint32_t n = 0; n < 4; n++) {
      target.postReceive(4096 * n, 4096);
      target.post(n % 2 == 0 ? kOpWrite : kOpRead, 65536, 4096, 4096, 1);
    }
    impostor.greet(target, kRest);
    impostor.awaitConnected();
    What what;
    while (!hasWord(impostor.out)) lives(bystander, peer, round);
    HOST_CHECK(read(impostor.out, &what, sizeof what) == sizeof what);
    impostor.end();
    lives(bystander, peer, round);
    sum.frames += what.frames;
    sum.refused += what.refused;
    sum.entries += what.entries;
    // The target's connection is the reason why this process watches that slot.
    gone++;
    while (hostCounter("slot_peers_gone") < gone && clockNow() < end) sched_yield();
    HOST_CHECK(hostCounter("slot_peers_gone") >= gone);
    gone = hostCounter("slot_peers_gone");
  }
  while (descriptors() > before && clockNow() < end) sched_yield();
  HOST_CHECK(descriptors() <= before);
  HOST_CHECK(untouched(foreign.memory, 0));
  HOST_CHECK(untouched(bystander.memory, 8192 + 4096));
  lives(bystander, peer, 0);
  peer.end();
  const uint64_t pairs = hostCounter("local_link_pairs_up"), broken = hostCounter("local_link_broken");
  // The attack is effective: pairs of rings were up, and were broken.
  if (frames >= kFrames)
    HOST_CHECK(sum.entries > 0 && pairs > 1 && broken > 0 && hostCounter("slot_bad_frames") > frames / 8);
  std::printf("seed %" PRIu64 ": %u frames, %u refused, %" PRIu64 " bad, %u entries, %" PRIu64 " pairs up, %" PRIu64
              " broken\n",
              seed, sum.frames, sum.refused, hostCounter("slot_bad_frames"), sum.entries, pairs, broken);
  return hosttest::failures;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  const std::string words = argc > 2 ? argv[2] : "";
  if (argc > 1 && std::strcmp(argv[1], "peer") == 0)
    return words.compare(0, 8, "impostor") == 0 ? impostorMain(words) : peerMain(words);
  hosttest::privateNetwork();
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  victimMain(seed, argc > 2 ? uint32_t(std::strtoul(argv[2], nullptr, 10)) : kFrames);
  return hosttest::finish("host_hostile");
}
