#include "simulation.h"

#include "platform/os.h"

namespace simulation {

namespace {

constexpr uint64_t kWatchNs = 50'000'000;
// The source of nd::fillRandom, so that keys and QPNs are also reproducible.
Random drawn(1);

}  // namespace

Simulation::Simulation(uint64_t seed) : random(seed), network(seed, agenda) { drawn = Random(random.next()); }

Simulation::~Simulation() {
  agenda.forEachFrame([&](Frame* frame) { network.release(frame); });
}

uint32_t Simulation::addHost(const Gid& gid) {
  const uint32_t vertex = network.addHost(gid);
  hosts_.resize(vertex + 1);
  gids_.resize(vertex + 1);
  gids_[vertex] = gid;
  return vertex;
}

void Simulation::boot(uint32_t vertex, const HostOptions& options) {
  hosts_[vertex] = std::make_unique<Host>(*this, vertex, gids_[vertex], options);
  if (!watching_) agenda.add(agenda.now + kWatchNs, EventKind::kWatch, 0);
  watching_ = true;
}

void Simulation::crash(uint32_t vertex) {
  if (!hosts_[vertex]) return;
  hosts_[vertex]->silent = true;
  flows.crash(*hosts_[vertex]);
  hosts_[vertex].reset();
}

void Simulation::setTimer(uint32_t vertex, uint64_t ns, uint32_t id) {
  const uint64_t span = host(vertex) ? host(vertex)->clock.span(ns) : ns;
  agenda.add(agenda.now + span, EventKind::kTimer, vertex, id);
}

bool Simulation::run(uint64_t until) {
  while (news.empty() && violations.empty()) {
    if (agenda.earliest() > until) {
      agenda.now = until;
      return false;
    }
    events++;
    handle(agenda.take());
  }
  return true;
}

void Simulation::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kArrival:
      if (!network.arrive(event.frame, event.index)) return;
      if (hosts_[event.index]) hosts_[event.index]->arrive(event.frame);
      else network.release(event.frame);
      return;
    case EventKind::kStep:
      if (hosts_[event.index]) hosts_[event.index]->step(event.at);
      return;
    case EventKind::kPost: return flows.post(flows.flow(event.index), uint32_t(event.detail));
    case EventKind::kReceive: return flows.receive(*flows.endpoint(event.index));
    case EventKind::kTimer: {
      News one{NewsKind::kTimer, event.index};
      one.a = uint32_t(event.detail);
      news.push_back(one);
      return;
    }
    case EventKind::kWatch:
      flows.watch();
      watching_ = !agenda.empty();
      if (watching_) agenda.add(agenda.now + kWatchNs, EventKind::kWatch, 0);
      return;
  }
}

void Simulation::violate(const std::string& what) {
  if (violations.size() < 20) violations.push_back(what);
}

void Simulation::expect(Status status, const char* what) {
  if (status == Status::kSuccess) return;
  char text[96];
  std::snprintf(text, sizeof text, "%s failed with status 0x%08x", what, unsigned(status));
  violate(text);
}

}  // namespace simulation

// Replaces the OS's function, which os.cc defines under another name in this build.
void nd::fillRandom(void* buffer, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) static_cast<uint8_t*>(buffer)[i] = uint8_t(simulation::drawn.next());
}
