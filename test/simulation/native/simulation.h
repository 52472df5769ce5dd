// A simulation of hosts on a network in virtual time, which reports events to connection management.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "flow.h"
#include "host.h"
#include "network.h"

namespace simulation {

enum class NewsKind : uint32_t { kNone, kMad, kTimer, kQpEvent, kFlowDone };

struct News {
  NewsKind kind = NewsKind::kNone;
  uint32_t host = 0;  // vertex of the host, or the flow of kFlowDone
  uint32_t a = 0, b = 0, c = 0;
  Gid source{}, destination{};
  uint8_t mad[wire::kMadBytes];
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed);
  ~Simulation();

  uint32_t addHost(const Gid& gid);
  void boot(uint32_t vertex, const HostOptions& options);
  void crash(uint32_t vertex);
  Host* host(uint32_t vertex) { return vertex < hosts_.size() ? hosts_[vertex].get() : nullptr; }
  void setTimer(uint32_t vertex, uint64_t ns, uint32_t id);
  // Runs until an event, a violation, or this time. Returns false if the time was reached.
  bool run(uint64_t until);

  void violate(const std::string& what);
  void expect(Status status, const char* what);
  void complete(const uint32_t* cqe) { flows.complete(cqe); }

  Random random;
  Agenda agenda;
  Network network;
  Flows flows{*this};
  std::deque<News> news;
  std::vector<std::string> violations;
  uint64_t events = 0;

 private:
  void handle(const Event& event);
  std::vector<std::unique_ptr<Host>> hosts_;  // by vertex
  std::vector<Gid> gids_;
  bool watching_ = false;
};

}  // namespace simulation
