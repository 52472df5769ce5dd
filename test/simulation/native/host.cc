#include "host.h"

#include "simulation.h"

namespace simulation {

namespace {

constexpr uint32_t kMadPacketBytes = wire::kBthBytes + wire::kDethBytes + wire::kMadBytes;
// Maximum time between two polls of a polling program.
constexpr uint64_t kLongestPollGapNs = 20'000;

}  // namespace

Host::Host(Simulation& simulation, uint32_t v, const Gid& g, const HostOptions& o)
    : vertex(v),
      gid(g),
      options(o),
      clock(simulation.agenda, o),
      simulation_(simulation),
      random_(simulation.random.next()) {
  engine.setSlot(o.slot);
  engine.setGsi(onGsi, this);
  simulation.expect(engine.attachKernel(this, &kernel), "attachKernel");
  simulation.expect(engine.allocatePd(kernel, &pd), "allocatePd");
  const uint64_t bytes = kCqHeaderBytes + uint64_t(o.cqEntries) * kCqeBytes;
  simulation.expect(engine.allocateRing(bytes, &cqRing), "allocateRing");
  simulation.expect(engine.createCq(kernel, cqRing, bytes, o.cqEntries, &cq), "createCq");
}

Host::~Host() {
  silent = true;
  for (Frame* frame : inbox_) simulation_.network.release(frame);
}

uint32_t Host::objectsLeft() {
  const auto counts = engine.objectCounts();  // pd, mr, mw, cq, qp, ring, range
  return counts[0] - 1 + counts[1] + counts[2] + counts[3] - 1 + counts[4] + counts[5] - 1 + counts[6];
}

uint64_t Host::counter(const char* name) {
  const auto& names = Engine::counterNames();
  const auto values = engine.counters();
  for (size_t i = 0; i < names.size(); i++)
    if (std::strcmp(names[i], name) == 0) return values[i];
  return UINT64_MAX;
}

// ── Link ────────────────────────────────────────────────────────────────────────────────────────

Frame* Host::frameTo(const Path& path, uint32_t length) {
  Frame* const frame = simulation_.network.allocate();
  frame->source = path.source;
  frame->destination = path.destination;
  frame->trafficClass = path.trafficClass;
  frame->length = length;
  return frame;
}

bool Host::send(const Path& path, const OutPacket& p) {
  sent_++;
  if (silent) return true;
  Frame* const frame = frameTo(path, p.headerLength + p.payloadLength + p.padLength);
  uint8_t* to = frame->bytes;
  std::memcpy(to, p.header, p.headerLength);
  to += p.headerLength;
  for (uint32_t i = 0; i < p.pieceCount; i++) {
    std::memcpy(to, p.pieces[i].data, p.pieces[i].length);
    to += p.pieces[i].length;
  }
  std::memset(to, 0, p.padLength);
  simulation_.network.send(vertex, frame);
  return true;
}

bool Host::sendSingle(const Path& path, uint8_t* bth, uint32_t length) {
  if (silent || !random_.chance(options.single)) return false;
  sent_++;
  Frame* const frame = frameTo(path, length);
  std::memcpy(frame->bytes, bth, length);
  simulation_.network.send(vertex, frame);
  std::memset(bth - kSingleRoom, 0xA5, kSingleRoom + length + 4);
  return true;
}

bool Host::poll(PacketSink& sink, uint32_t budget) {
  for (uint32_t i = 0; i < budget; i++) {
    if (inbox_.empty()) return false;
    Frame* const frame = inbox_.front();
    inbox_.pop_front();
    taken_++;
    PacketMeta meta;
    meta.source = frame->source;
    meta.destination = frame->destination;
    meta.trafficClass = frame->trafficClass;
    const bool small = frame->length <= kSingleMostBytes && frame->length % 4 == 0;
    const bool taken =
        small && random_.chance(options.single) && sink.onSinglePacket(meta, frame->bytes, frame->length);
    if (!taken) sink.onPacket(meta, frame->bytes, frame->length);
    simulation_.network.release(frame);
  }
  return !inbox_.empty();
}

void Host::arrive(Frame* frame) {
  inbox_.push_back(frame);
  wake(simulation_.agenda.now + random_.upTo(options.latencyNs));
}

// ── Connection management ───────────────────────────────────────────────────────────────────────

void Host::sendMad(const Path& path, const uint8_t* mad, uint32_t psn) {
  Frame* const frame = frameTo(path, kMadPacketBytes);
  wire::Bth bth;
  bth.opcode = wire::kOpUdSendOnly;
  bth.destinationQpn = wire::kGsiQpn;
  bth.psn = psn & wire::kPsnMask;
  wire::emitBth(frame->bytes, bth);
  wire::emitDeth(frame->bytes + wire::kBthBytes, {wire::kGsiQkey, wire::kGsiQpn});
  std::memcpy(frame->bytes + wire::kBthBytes + wire::kDethBytes, mad, wire::kMadBytes);
  simulation_.network.send(vertex, frame);
}

void Host::onGsi(void* argument, const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  auto* const self = static_cast<Host*>(argument);
  if (length != kMadPacketBytes) return self->simulation_.violate("a MAD packet has another length");
  News news{NewsKind::kMad, self->vertex};
  news.source = meta.source;
  news.destination = meta.destination;
  std::memcpy(news.mad, bth + wire::kBthBytes + wire::kDethBytes, wire::kMadBytes);
  self->simulation_.news.push_back(news);
}

void Host::onEvent(const HcaEvent& event) {
  if (event.kind == HcaEvent::Kind::kCq) simulation_.violate("a completion queue has overrun");
  if (event.kind != HcaEvent::Kind::kQp || silent) return;
  News news{NewsKind::kQpEvent, vertex};
  news.a = event.words[1];
  news.b = event.words[2];
  news.c = event.words[3];
  simulation_.news.push_back(news);
}

// ── Steps ───────────────────────────────────────────────────────────────────────────────────────

void Host::wake(uint64_t at) {
  at = std::max({at, busyUntil_, simulation_.agenda.now});
  if (at >= std::min(stepAt_, timerAt_)) return;
  stepAt_ = at;
  simulation_.agenda.add(at, EventKind::kStep, vertex, at);
}

// A postponed timer is not moved. Its step finds nothing to do and sets the timer again.
void Host::wakeByTimer(uint64_t at) {
  at = std::max({at, busyUntil_, simulation_.agenda.now});
  if (at >= timerAt_) return;
  timerAt_ = at;
  simulation_.agenda.add(at, EventKind::kStep, vertex, at);
}

void Host::arrange() {
  if (stepping) return;
  uint64_t due;
  {
    std::lock_guard<EngineLock> lock(engine.lock());
    due = engine.nextDeadline();
  }
  if (due == 0) wake(0);
  else if (due != UINT64_MAX) wakeByTimer(clock.global(due));
}

void Host::step(uint64_t planned) {
  if (planned != stepAt_ && planned != timerAt_) return;  // replaced by an earlier step
  if (planned == timerAt_) timerAt_ = UINT64_MAX;
  if (planned == stepAt_) stepAt_ = UINT64_MAX;
  taken_ = sent_ = 0;
  stepping = true;
  const bool polls = random_.chance(options.polls);
  bool more;
  {
    std::lock_guard<EngineLock> lock(engine.lock());
    more = engine.poll(polls ? random_.chance(0.5) ? Stepper::kPoller : Stepper::kWoken : Stepper::kEngine);
  }
  more |= takeCompletions();
  stepping = false;
  const uint64_t now = simulation_.agenda.now;
  busyUntil_ = now + options.stepNs + options.packetNs * (taken_ + sent_);
  if (random_.chance(options.stalls)) busyUntil_ = now + random_.upTo(options.longestStallNs);
  if (polls) wake(busyUntil_ + random_.upTo(kLongestPollGapNs));
  else if (more || !inbox_.empty()) wake(busyUntil_);
  else arrange();
}

bool Host::takeCompletions() {
  bool moved = false;
  const uint32_t* const words = reinterpret_cast<uint32_t*>(cqRing);
  while (__atomic_load_n(words + kCqProducer, __ATOMIC_ACQUIRE) != cqConsumer) {
    const uint32_t* w = words + kCqHeaderBytes / 4 + size_t(cqConsumer & (options.cqEntries - 1)) * (kCqeBytes / 4);
    uint32_t cqe[kCqeBytes / 4];
    std::memcpy(cqe, w, sizeof cqe);
    cqConsumer++;
    __atomic_store_n(reinterpret_cast<uint32_t*>(cqRing) + kCqConsumer, cqConsumer, __ATOMIC_RELEASE);
    simulation_.complete(cqe);
    moved = true;
  }
  return moved;
}

}  // namespace simulation
