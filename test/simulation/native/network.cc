#include "network.h"

#include <algorithm>

namespace simulation {

namespace {

uint64_t hashOf(const Gid& gid) {
  uint64_t words[2];
  std::memcpy(words, gid.raw.data(), sizeof words);
  return mix(words[0]) ^ mix(words[1] + 1);
}

uint64_t keyOf(uint32_t port, uint64_t number) { return uint64_t(port) << 40 | number; }

}  // namespace

void Agenda::add(uint64_t at, EventKind kind, uint32_t index, uint64_t detail, Frame* frame) {
  heap_.push_back({std::max(at, now), order_++, kind, index, detail, frame});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<Event>());
}

Event Agenda::take() {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<Event>());
  const Event event = heap_.back();
  heap_.pop_back();
  now = event.at;
  return event;
}

Network::~Network() = default;

uint32_t Network::addHost(const Gid& gid) {
  const uint32_t vertex = addSwitch();
  vertexes_[vertex].host = true;
  hosts_[hashOf(gid)] = vertex;
  return vertex;
}

uint32_t Network::addSwitch() {
  vertexes_.emplace_back();
  return uint32_t(vertexes_.size() - 1);
}

uint32_t Network::addLink(uint32_t a, uint32_t b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    vertexes_[from].out.push_back(uint32_t(ports.size()));
    ports.emplace_back();
    ports.back().from = from;
    ports.back().to = to;
  }
  return uint32_t(ports.size() / 2 - 1);
}

// Searches from each host. A port leads to the host if the port's other end is nearer to it. Hosts do not forward
// packets.
void Network::findRoutes() {
  for (Vertex& v : vertexes_) v.routes.assign(v.host ? 0 : vertexes_.size(), {});
  for (uint32_t target = 0; target < vertexes_.size(); target++) {
    if (!vertexes_[target].host) continue;
    std::vector<uint32_t> distance(vertexes_.size(), UINT32_MAX);
    std::deque<uint32_t> line{target};
    distance[target] = 0;
    while (!line.empty()) {
      const uint32_t at = line.front();
      line.pop_front();
      if (vertexes_[at].host && at != target) continue;
      for (uint32_t port : vertexes_[at].out) {
        const uint32_t neighbour = ports[port].to;
        if (distance[neighbour] == UINT32_MAX) {
          distance[neighbour] = distance[at] + 1;
          line.push_back(neighbour);
        }
        if (!vertexes_[neighbour].host && distance[neighbour] == distance[at] + 1)
          vertexes_[neighbour].routes[target].push_back(port ^ 1);
      }
    }
  }
}

Frame* Network::allocate() {
  live++;
  if (!free_) {
    frames_.push_back(std::make_unique<Frame>());
    return frames_.back().get();
  }
  Frame* const frame = free_;
  free_ = frame->next;
  frame->next = nullptr;
  return frame;
}

void Network::release(Frame* frame) {
  live--;
  frame->next = free_;
  free_ = frame;
}

Frame* Network::copyOf(const Frame& frame) {
  Frame* const copy = allocate();
  copy->source = frame.source;
  copy->destination = frame.destination;
  copy->trafficClass = frame.trafficClass;
  copy->length = frame.length;
  std::memcpy(copy->bytes, frame.bytes, frame.length);
  return copy;
}

void Network::prescribe(const std::vector<AppliedFault>& faults) {
  prescribed_ = true;
  only_.clear();
  for (const AppliedFault& f : faults) only_[keyOf(f.port, f.number)] = f.fault;
}

Fault Network::faultOf(uint32_t port, uint64_t number, bool mad) const {
  if (prescribed_) {
    const auto found = only_.find(keyOf(port, number));
    return found == only_.end() ? Fault::kNone : found->second;
  }
  const FaultRates& rates = mad ? ports[port].mads : ports[port].data;
  double left = unit(mix(seed_ ^ mix(keyOf(port, number))));
  if ((left -= rates.loss) < 0) return Fault::kLoss;
  if ((left -= rates.duplicate) < 0) return Fault::kDuplicate;
  if ((left -= rates.delay) < 0) return Fault::kDelay;
  if ((left -= rates.ancient) < 0) return Fault::kAncient;
  return Fault::kNone;
}

void Network::send(uint32_t host, Frame* frame) {
  if (vertexes_[host].out.empty()) return release(frame);
  enqueue(vertexes_[host].out[0], frame);
}

bool Network::arrive(Frame* frame, uint32_t vertex) {
  Vertex& v = vertexes_[vertex];
  if (v.host) return true;
  const auto target = hosts_.find(hashOf(frame->destination));
  const std::vector<uint32_t>* const routes = target == hosts_.end() ? nullptr : &v.routes[target->second];
  if (!routes || routes->empty()) {
    lost++;
    release(frame);
    return false;
  }
  // All packets of a connection take the same path.
  const uint64_t flow = hashOf(frame->source) ^ hashOf(frame->destination) ^ nd::wire::destinationQpn(frame->bytes);
  enqueue((*routes)[routes->size() == 1 ? 0 : mix(flow) % routes->size()], frame);
  return false;
}

void Network::enqueue(uint32_t number, Frame* frame) {
  Port& port = ports[number];
  const uint64_t now = agenda_.now;
  const uint64_t count = port.count++;
  Fault fault = port.up ? faultOf(number, count, frame->isMad()) : Fault::kLoss;
  if (fault != Fault::kNone && port.up && applied.size() < kMostApplied) applied.push_back({number, count, fault});
  while (!port.waiting.empty() && port.waiting.front().first <= now) {
    port.queued -= port.waiting.front().second;
    port.waiting.pop_front();
  }
  const uint32_t size = frame->length + kOverhead;
  port.samples++;
  port.seen[std::min<uint64_t>(Port::kBuckets - 1, port.queued * Port::kBuckets / port.capacity)]++;
  const bool full = port.queued + size > port.capacity;
  const bool tooLong = port.mtu != 0 && frame->length + kIpOverhead > port.mtu;
  if (full || tooLong || fault == Fault::kLoss) {
    port.dropped += full;
    port.tooLong += tooLong;
    lost++;
    release(frame);
    return;
  }
  if (port.mark && port.queued >= port.mark && (frame->trafficClass & nd::wire::kEcnMask) != 0) {
    frame->trafficClass |= nd::wire::kCongestionExperienced;
    port.marked++;
  }
  port.freeAt = std::max(now, port.freeAt) + std::max<uint64_t>(1, uint64_t(size * port.nsPerByte));
  port.waiting.push_back({port.freeAt, size});
  port.queued += size;
  port.longest = std::max(port.longest, port.queued);
  port.sent++;
  port.sentBytes += size;
  packets++;
  digest = mix(digest ^ now ^ uint64_t(number) << 40 ^ uint64_t(frame->bytes[0]) << 32 ^
               nd::wire::load24(frame->bytes + 9) ^ uint64_t(frame->length) << 48);
  uint64_t at = port.freeAt + port.delayNs;
  const uint64_t more = mix((seed_ + 1) ^ mix(keyOf(number, count)));
  if (fault == Fault::kDelay) at += more % (port.longestDelayNs + 1);
  if (fault == Fault::kDuplicate || fault == Fault::kAncient) {
    const uint64_t longest = fault == Fault::kDuplicate ? port.longestDelayNs : port.longestAncientNs;
    agenda_.add(at + more % (longest + 1), EventKind::kArrival, port.to, 0, copyOf(*frame));
  }
  agenda_.add(at, EventKind::kArrival, port.to, 0, frame);
}

}  // namespace simulation
