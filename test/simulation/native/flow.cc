#include "flow.h"

#include <algorithm>

#include "simulation.h"

namespace simulation {

namespace {

constexpr uint32_t kInlineBytes = 128, kAtomicBytes = 64;
constexpr uint32_t kOpcodes[kRequestKinds] = {kOpSend, kOpWrite, kOpWrite, kOpRead, kOpFetchAdd, kOpCompareExchange};
constexpr const char* kNames[kRequestKinds] = {"SEND", "WRITE",     "WRITE with immediate",
                                               "READ", "FETCH_ADD", "COMPARE_SWAP"};
constexpr uint32_t kAccess = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic | kAccessLocalWrite;

uint32_t placeBytes(uint32_t bytes) { return (std::max(bytes, 8u) + 63) & ~63u; }

}  // namespace

uint32_t Flows::add(const Traffic* forth, const Traffic* back, bool mayFail, uint64_t stuckNs) {
  auto flow = std::make_unique<Flow>();
  flow->id = uint32_t(flows_.size());
  flow->mayFail = mayFail;
  flow->stuckNs = stuckNs;
  const Traffic* const both[] = {forth, back};
  for (uint32_t i = 0; i < 2; i++) {
    Half& half = flow->halves[i];
    half.random = Random(s_.random.next());
    half.key = half.random.next();
    half.active = both[i] != nullptr;
    if (both[i]) half.traffic = *both[i];
  }
  flows_.push_back(std::move(flow));
  return uint32_t(flows_.size() - 1);
}

Endpoint& Flows::makeEndpoint(Host& host, uint32_t flowId, uint32_t side) {
  Flow& f = flow(flowId);
  auto made = std::make_unique<Endpoint>();
  Endpoint& e = *made;
  e.id = uint32_t(endpoints_.size());
  endpoints_.push_back(std::move(made));
  e.flow = &f;
  e.side = side;
  e.host = &host;
  e.out = &f.halves[side];
  e.in = &f.halves[1 - side];
  e.requestBytes = e.out->active ? placeBytes(e.out->traffic.maxBytes) : 0;
  e.responseBytes = e.in->active ? placeBytes(e.in->traffic.maxBytes) : 0;
  e.sendEntries = e.out->active ? e.out->traffic.depth : 1;
  e.receiveEntries = e.in->active ? e.in->traffic.receives : 1;
  e.receivesAt = e.requestBytes * e.sendEntries;
  e.writesAt = e.receivesAt + e.responseBytes * e.receiveEntries;
  e.readAt = e.writesAt + (e.in->active ? e.responseBytes * (e.in->traffic.depth + 1) : 0);
  e.atomicsAt = e.readAt + e.responseBytes;
  const uint32_t bytes = e.atomicsAt + kAtomicBytes;
  e.memory.assign((bytes + 7) / 8, 0);
  fill(e.at(e.readAt), e.responseBytes, ~e.in->key);
  Engine& engine = host.engine;
  const auto address = reinterpret_cast<uint64_t>(e.memory.data());
  s_.expect(engine.pinRange(address, bytes, &e.range), "pinRange");
  s_.expect(engine.registerMr(host.pd, address, bytes, kAccess, &e.lkey, &e.rkey), "registerMr");
  e.sendStride = kSendWqeHeaderBytes + kInlineBytes;
  e.receiveStride = kReceiveWqeHeaderBytes + kSgeBytes;
  QpCreate r;
  r.pd = host.pd;
  r.sendCq = r.receiveCq = host.cq;
  r.ringBytes = kQpHeaderBytes + uint64_t(e.sendEntries) * e.sendStride + uint64_t(e.receiveEntries) * e.receiveStride;
  s_.expect(engine.allocateRing(r.ringBytes, &e.ring), "allocateRing");
  r.ringAddress = e.ring;
  r.sendEntries = e.sendEntries;
  r.sendStride = e.sendStride;
  r.sendSge = 1;
  r.maxInline = kInlineBytes;
  r.receiveEntries = e.receiveEntries;
  r.receiveStride = e.receiveStride;
  r.receiveSge = 1;
  r.token = e.id;
  s_.expect(engine.createQp(r, &e.qp, &e.qpn), "createQp");
  return e;
}

Endpoint* Flows::byQpn(const Host& host, uint32_t qpn) {
  for (auto it = endpoints_.rbegin(); it != endpoints_.rend(); ++it)
    if ((*it)->host == &host && (*it)->qp && (*it)->qpn == qpn) return it->get();
  return nullptr;
}

Status Flows::bring(Endpoint& e, QpAttributes a) {
  using namespace qpmask;
  a.port = 1;
  a.access = kAccess;
  a.path.source = e.host->gid;
  constexpr uint32_t init = kState | kPkeyIndex | kPort | qpmask::kAccess;
  constexpr uint32_t rtr = kState | kPath | kPathMtu | kDestinationQpn | kReceivePsn | kResponderResources |
                           kMinRnrTimer | kRnrTimeout | kExtensions;
  constexpr uint32_t rts = kState | kAckTimeout | kRetryCount | kRnrRetry | kSendPsn | kInitiatorDepth;
  const Status status = e.host->engine.connectQp(e.qp, {init, rtr, rts}, a);
  if (status != Status::kSuccess) return status;
  for (uint32_t i = 0; e.in->active && i < e.receiveEntries; i++) receive(e);
  e.host->arrange();
  return status;
}

void Flows::start(Flow& f, Endpoint& client, Endpoint& server) {
  f.ends = {&client, &server};
  f.started = true;
  for (uint32_t i = 0; i < 2; i++) {
    Half& half = f.halves[i];
    if (!half.active) continue;
    half.from = f.ends[i];
    half.to = f.ends[1 - i];
    half.startedAt = half.progressAt = s_.agenda.now;
    half.written.assign(half.traffic.depth + 1, {0, 0});
    s_.agenda.add(s_.agenda.now + half.random.upTo(half.traffic.thinkNs), EventKind::kPost, f.id, i);
  }
}

void Flows::stop(Flow& f) {
  for (Half& half : f.halves) half.stopped = true;
  report(f);
}

// ── Requests ────────────────────────────────────────────────────────────────────────────────────

void Flows::post(Flow& f, uint32_t index) {
  Half& half = f.halves[index];
  half.postAt = 0;
  if (!half.from || !half.from->qp || half.from->ending || half.failed) return;
  const Traffic& t = half.traffic;
  bool posted = false;
  while (!half.stopped && half.outstanding.size() < t.depth && (t.messages == 0 || half.posted < t.messages)) {
    if (half.outstanding.empty()) half.progressAt = s_.agenda.now;
    request(half);
    posted = true;
    if (t.thinkNs == 0) continue;
    half.postAt = s_.agenda.now + half.random.upTo(t.thinkNs);
    s_.agenda.add(half.postAt, EventKind::kPost, f.id, index);
    break;
  }
  if (!posted) return;
  half.from->host->engine.doorbell(half.from->qp);
  half.from->host->arrange();
}

void Flows::request(Half& half) {
  Endpoint &e = *half.from, &peer = *half.to;
  const Traffic& t = half.traffic;
  Request r;
  double all = 0;
  for (double w : t.weights) all += w;
  double drawn = unit(half.random.next()) * all;
  uint32_t kind = 0;
  while (kind + 1 < kRequestKinds && (drawn -= t.weights[kind]) >= 0) kind++;
  while (t.weights[kind] == 0) kind--;
  r.kind = RequestKind(kind);
  r.number = half.posted++;
  r.wqe = e.sendProducer;
  r.place = e.requestsAt + (r.wqe & (e.sendEntries - 1)) * e.requestBytes;
  r.bytes = t.minBytes + half.random.below(t.maxBytes - t.minBytes + 1);
  r.key = mix(half.key ^ r.number);
  r.remote = 0;
  switch (r.kind) {
    case kWriteKind:
    case kWriteImmediateKind: {
      const uint32_t place = uint32_t(half.writes++ % half.written.size());
      auto& before = half.written[place];
      r.remote = peer.writesAt + place * peer.responseBytes;
      equal(half, "an older WRITE was changed after its end:", peer.at(r.remote), before.second, before.first,
            r.number);
      before = {r.key, r.bytes};
      break;
    }
    case kReadKind: {
      const uint32_t skip = half.random.below((t.maxBytes - r.bytes) / 8 + 1) * 8;
      r.remote = peer.readAt + skip;
      r.key = ~half.key + skip / 8;
      break;
    }
    case kFetchAddKind:
      r.bytes = 8;
      r.remote = peer.atomicsAt;
      r.key = half.adds++;
      break;
    case kSwapKind:
      r.bytes = 8;
      r.remote = peer.atomicsAt + 8;
      r.key = half.swaps++;
      break;
    default: break;
  }
  if (r.kind <= kWriteImmediateKind) fill(e.at(r.place), r.bytes, r.key);
  else std::memset(e.at(r.place), 0xA5, r.bytes);
  if (r.kind == kSendKind || r.kind == kWriteImmediateKind) half.expected.push_back({r.kind, r.number, r.bytes, r.key});
  const bool last = t.messages != 0 && half.posted == t.messages;
  const bool signaled =
      last || half.silent >= t.depth / 2 || !half.random.chance(t.unsignaled) || half.traffic.thinkNs != 0;
  half.silent = signaled ? 0 : half.silent + 1;
  half.outstanding.push_back(r);
  writeRequest(half, r, signaled);
}

void Flows::writeRequest(Half& half, const Request& r, bool signaled) {
  Endpoint &e = *half.from, &peer = *half.to;
  auto* const w = reinterpret_cast<uint32_t*>(e.ring + kQpHeaderBytes +
                                              uint64_t(e.sendProducer & (e.sendEntries - 1)) * e.sendStride);
  std::memset(w, 0, kSendWqeHeaderBytes);
  const bool mayInline = r.kind <= kWriteImmediateKind && r.bytes <= kInlineBytes;
  const bool inlined = mayInline && half.random.chance(half.traffic.inlined);
  const bool immediate = r.kind == kWriteImmediateKind || (r.kind == kSendKind && (r.number & 1));
  w[kSwOpcode] = kOpcodes[r.kind];
  w[kSwFlags] =
      (signaled ? kSendFlagSignaled : 0) | (inlined ? kSendFlagInline : 0) | (immediate ? kSendFlagImmediate : 0);
  w[kSwSgeCount] = inlined ? r.bytes : 1;
  w[kSwImmediate] = uint32_t(r.number);
  if (r.kind != kSendKind) {
    const auto remote = reinterpret_cast<uint64_t>(peer.at(r.remote));
    w[kSwRemoteLo] = uint32_t(remote);
    w[kSwRemoteHi] = uint32_t(remote >> 32);
    w[kSwRkey] = peer.rkey;
  }
  const uint64_t compare = r.kind == kFetchAddKind ? 1 : r.key;
  w[kSwCompareLo] = uint32_t(compare);
  w[kSwCompareHi] = uint32_t(compare >> 32);
  w[kSwSwapLo] = uint32_t(r.key + 1);
  w[kSwSwapHi] = uint32_t((r.key + 1) >> 32);
  uint32_t* const data = w + kSendWqeHeaderBytes / 4;
  if (inlined) {
    std::memcpy(data, e.at(r.place), r.bytes);
  } else {
    const auto address = reinterpret_cast<uint64_t>(e.at(r.place));
    data[kSgeAddressLo] = uint32_t(address);
    data[kSgeAddressHi] = uint32_t(address >> 32);
    data[kSgeLength] = r.bytes;
    data[kSgeLkey] = e.lkey;
  }
  __atomic_store_n(e.header() + kQpSendProducer, ++e.sendProducer, __ATOMIC_RELEASE);
}

void Flows::receive(Endpoint& e) {
  if (!e.qp || e.ending) return;
  const uint32_t place = e.receiveProducer & (e.receiveEntries - 1);
  auto* const w = reinterpret_cast<uint32_t*>(e.ring + kQpHeaderBytes + uint64_t(e.sendEntries) * e.sendStride +
                                              uint64_t(place) * e.receiveStride);
  uint32_t* const sge = w + kReceiveWqeHeaderBytes / 4;
  const auto address = reinterpret_cast<uint64_t>(e.at(e.receivesAt + place * e.responseBytes));
  w[kRwSgeCount] = 1;
  sge[kSgeAddressLo] = uint32_t(address);
  sge[kSgeAddressHi] = uint32_t(address >> 32);
  sge[kSgeLength] = e.responseBytes;
  sge[kSgeLkey] = e.lkey;
  __atomic_store_n(e.header() + kQpReceiveProducer, ++e.receiveProducer, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(e.header() + kQpReceiveBell, __ATOMIC_SEQ_CST)) return;
  e.host->engine.doorbell(e.qp);
  e.host->arrange();
}

// ── Completions ─────────────────────────────────────────────────────────────────────────────────

void Flows::complete(const uint32_t* cqe) {
  Endpoint* const e = endpoint(cqe[kCqeToken]);
  if (!e) return s_.violate("a completion has the token of no queue pair");
  if (!e->qp) return;  // the endpoint has ended and accepts nothing more
  if (cqe[kCqeFlags] & kCqeFlagReceiveQueue) onReceiveCompletion(*e, cqe);
  else onSendCompletion(*e, cqe);
}

void Flows::onSendCompletion(Endpoint& e, const uint32_t* cqe) {
  Half& half = *e.out;
  const uint32_t wqe = cqe[kCqeWqe], status = cqe[kCqeStatus];
  half.progressAt = s_.agenda.now;
  // The completion of a request also completes the unsignaled requests before it.
  while (!half.outstanding.empty() && half.outstanding.front().wqe != wqe && !half.failed) {
    check(half, half.outstanding.front());
    half.outstanding.pop_front();
  }
  if (half.outstanding.empty() || half.outstanding.front().wqe != wqe)
    return wrong(half,
                 "a completion for request " + std::to_string(wqe) + ", which is not outstanding or not the next");
  const Request r = half.outstanding.front();
  half.outstanding.pop_front();
  if (status == kWcSuccess) {
    if (half.failed) return wrong(half, "request " + std::to_string(r.number) + " succeeded after one that failed");
    if (cqe[kCqeOpcode] != kOpcodes[r.kind])
      return wrong(half, std::string("the completion of a ") + kNames[r.kind] + " has opcode " +
                             std::to_string(cqe[kCqeOpcode]));
    if (r.kind >= kReadKind && cqe[kCqeLength] != r.bytes)
      return wrong(half, std::string(kNames[r.kind]) + " of " + std::to_string(r.bytes) +
                             " bytes completed with length " + std::to_string(cqe[kCqeLength]));
    check(half, r);
  } else {
    const bool allowed = e.flow->mayFail || e.flow->reported || e.ending;
    if (!allowed)
      return wrong(half, std::string(kNames[r.kind]) + ' ' + std::to_string(r.number) + " failed with status " +
                             std::to_string(status));
    if (half.failed && status != kWcFlushed)
      return wrong(half,
                   "a second request failed, with status " + std::to_string(status) + ", instead of being flushed");
    if (!half.failed) half.failure = status;
    half.failed = true;
  }
  if (half.done()) return report(*e.flow);
  if (half.postAt == 0) post(*e.flow, e.side);
}

void Flows::check(Half& half, const Request& r) {
  half.completed++;
  half.bytes += r.bytes;
  Endpoint &e = *half.from, &peer = *half.to;
  const uint8_t* const own = e.at(r.place);
  uint64_t result = 0;
  switch (r.kind) {
    case kWriteKind:
    case kWriteImmediateKind:
      if (peer.qp)
        equal(half, "a completed WRITE is not in the peer's memory:", peer.at(r.remote), r.bytes, r.key, r.number);
      break;
    case kReadKind: equal(half, "a READ brought other bytes:", own, r.bytes, r.key, r.number); break;
    case kFetchAddKind:
    case kSwapKind:
      std::memcpy(&result, own, 8);
      if (result != r.key)
        wrong(half, std::string(kNames[r.kind]) + ' ' + std::to_string(r.number) + " found " + std::to_string(result) +
                        " instead of " + std::to_string(r.key) + ": it, or one before, was not executed exactly once");
      break;
    default: break;
  }
}

void Flows::onReceiveCompletion(Endpoint& e, const uint32_t* cqe) {
  Half& half = *e.in;
  const uint32_t number = e.received++, status = cqe[kCqeStatus];
  if (cqe[kCqeWqe] != number)
    return wrong(half, "receive " + std::to_string(cqe[kCqeWqe]) + " completed instead of " + std::to_string(number));
  if (status != kWcSuccess) {
    if (status != kWcFlushed)
      wrong(half, "receive " + std::to_string(number) + " failed with status " + std::to_string(status));
    else if (!e.flow->mayFail && !e.flow->reported && !e.ending)
      wrong(half, "receive " + std::to_string(number) + " was flushed");
    return;
  }
  half.progressAt = s_.agenda.now;
  if (half.expected.empty()) return wrong(half, "a message arrived that was not sent, or a second time");
  const Expected x = half.expected.front();
  half.expected.pop_front();
  half.arrived++;
  const bool write = x.kind == kWriteImmediateKind, immediate = write || (x.number & 1);
  if (cqe[kCqeOpcode] != (write ? kOpReceiveRdmaWrite : kOpReceive) || cqe[kCqeLength] != x.bytes ||
      ((cqe[kCqeFlags] & kCqeFlagImmediate) != 0) != immediate ||
      (immediate && cqe[kCqeImmediate] != uint32_t(x.number)))
    return wrong(half, std::string("instead of ") + kNames[x.kind] + ' ' + std::to_string(x.number) + " of " +
                           std::to_string(x.bytes) + " bytes one of " + std::to_string(cqe[kCqeLength]) +
                           " bytes arrived");
  if (!write) {
    const uint32_t place = e.receivesAt + (number & (e.receiveEntries - 1)) * e.responseBytes;
    if (!equal(half, "a SEND brought other bytes:", e.at(place), x.bytes, x.key, x.number)) return;
  }
  if (half.random.chance(half.traffic.late))
    s_.agenda.add(s_.agenda.now + half.random.upTo(half.traffic.lateNs), EventKind::kReceive, e.id);
  else receive(e);
  if (half.done()) report(*e.flow);
}

// ── Ends ────────────────────────────────────────────────────────────────────────────────────────

void Flows::report(Flow& f) {
  if (!f.started || f.reported || !f.halves[0].done() || !f.halves[1].done()) return;
  f.reported = true;
  for (Half& half : f.halves) half.doneAt = s_.agenda.now;
  News news{NewsKind::kFlowDone, f.id};
  news.a = f.halves[0].failed || f.halves[1].failed;
  s_.news.push_back(news);
}

void Flows::end(Endpoint& e) {
  if (!e.qp) return;
  e.ending = true;
  Host& host = *e.host;
  QpAttributes a;
  a.state = kQpsError;
  s_.expect(host.engine.modifyQp(e.qp, qpmask::kState, a), "modifyQp to ERROR");
  host.takeCompletions();
  if (!e.out->outstanding.empty() && e.out->from == &e)
    wrong(*e.out, std::to_string(e.out->outstanding.size()) + " requests have no completion after the end");
  if (e.received != e.receiveProducer)
    wrong(*e.in, std::to_string(e.receiveProducer - e.received) + " receives have no completion after the end");
  s_.expect(host.engine.destroyQp(e.qp), "destroyQp");
  s_.expect(host.engine.deregisterMr(host.pd, e.lkey), "deregisterMr");
  host.engine.unpinRange(e.range);
  host.engine.releaseRing(e.ring);
  e.qp = 0;
  host.arrange();
}

void Flows::crash(const Host& host) {
  for (auto& e : endpoints_) {
    if (e->host != &host) continue;
    e->qp = 0;
    e->host = nullptr;
    e->flow->mayFail = true;
    e->out->failed = true;
    report(*e->flow);
  }
}

void Flows::watch() {
  const uint64_t now = s_.agenda.now;
  for (auto& f : flows_) {
    if (!f->started || f->reported || f->stuckNs == 0) continue;
    for (Half& half : f->halves) {
      if (half.failed || half.done() || (half.outstanding.empty() && half.expected.empty())) continue;
      if (now - half.progressAt > f->stuckNs)
        wrong(half, "nothing has moved for " + std::to_string((now - half.progressAt) / 1'000'000) + " ms, with " +
                        std::to_string(half.outstanding.size()) + " requests outstanding");
    }
  }
}

void Flows::resetFigures() {
  for (auto& f : flows_)
    for (Half& half : f->halves) half.bytes = 0;
}

bool Flows::equal(const Half& half, const char* what, const uint8_t* from, uint32_t bytes, uint64_t key,
                  uint64_t number) {
  const uint32_t place = firstWrong(from, bytes, key);
  if (place == bytes) return true;
  wrong(half, std::string(what) + " message " + std::to_string(number) + ", byte " + std::to_string(place) + " of " +
                  std::to_string(bytes));
  return false;
}

std::string Flows::name(const Half& half) const {
  for (const auto& f : flows_)
    for (uint32_t i = 0; i < 2; i++)
      if (&f->halves[i] == &half) return "flow " + std::to_string(f->id) + (i ? " (back)" : "");
  return "no flow";
}

void Flows::wrong(const Half& half, const std::string& what) { s_.violate(name(half) + ": " + what); }

}  // namespace simulation
