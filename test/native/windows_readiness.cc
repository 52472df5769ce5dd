// Tests of sets with more members than one wait call of the OS supports.
#include <thread>
#include <vector>

#include "check.h"
#include "platform/event.h"
#include "platform/local_names.h"
#include "platform/os.h"
#include "platform/readiness.h"

namespace {

using nd::Readiness, nd::UniqueFd;

constexpr uint32_t kMany = 200;
constexpr uint64_t kTimeoutNs = 60'000'000'000, kMomentNs = 50'000'000;

// Consumes events until that of the member with this tag. Returns the number of others.
uint32_t takeUntil(Readiness& set, uint64_t tag) {
  const nd::Descriptor fd = set.fd();
  for (uint32_t others = 0, turns = 0; turns < 100; turns++) {
    Readiness::Event events[Readiness::kMostEvents];
    const uint32_t count = set.take(events);
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
      if (events[i].tag == tag) found = true;
      else others++;
    }
    if (found) return others;
    nd::waitReadable(&fd, 1, kTimeoutNs);
  }
  return UINT32_MAX;
}

// The pause makes it likely that the other thread sleeps.
void pause() {
  const UniqueFd never = nd::makeEvent();
  const nd::Descriptor fd = never.get();
  nd::waitReadable(&fd, 1, kMomentNs / 50);
}

bool isQuiet(Readiness& set) {
  Readiness::Event events[Readiness::kMostEvents];
  const nd::Descriptor fd = set.fd();
  // The OS may report an earlier event once more.
  for (uint32_t turn = 0; turn < 3; turn++) {
    if (set.take(events) != 0) return false;
    if (nd::waitReadable(&fd, 1, kMomentNs) == 0) return true;
  }
  return false;
}

// Creates a set of kMany events, each with its number as the tag.
struct Many {
  Many() {
    for (uint32_t i = 0; i < kMany; i++) {
      events.push_back(nd::makeEvent());
      CHECK(set.add(events.back().get(), Readiness::kReadable, i));
    }
    CHECK(isQuiet(set));
  }
  Readiness set;
  std::vector<UniqueFd> events;
};

}  // namespace

TEST(each_of_200_events_wakes_a_sleeping_thread) {
  Many many;
  auto& [set, events] = many;
  for (uint32_t i = 0; i < kMany; i++) {
    check::note = "event", check::noteNumber = i;
    const uint64_t before = nd::monotonicNs();
    std::thread raiser([&] {
      pause();
      nd::raiseEvent(events[i].get());
    });
    CHECK_EQ(takeUntil(set, i), 0);
    CHECK(nd::monotonicNs() - before < kTimeoutNs);
    raiser.join();
    nd::clearEvent(events[i].get());
  }
  CHECK(isQuiet(set));
}

TEST(members_leave_a_large_set_and_others_take_their_places) {
  Many many;
  auto& [set, events] = many;
  for (uint32_t i = 0; i < kMany; i += 2) set.remove(events[i].get());
  for (uint32_t i = 0; i < kMany; i += 2) nd::raiseEvent(events[i].get());
  CHECK(isQuiet(set));
  for (uint32_t i = 1; i < kMany; i += 2) set.change(events[i].get(), Readiness::kReadable, 1000 + i);
  nd::raiseEvent(events[kMany - 1].get());
  CHECK_EQ(takeUntil(set, 1000 + kMany - 1), 0);
  set.change(events[kMany - 1].get(), Readiness::kNothing, 0);
  CHECK(isQuiet(set));
}

TEST(connections_of_70_clients_are_all_heard) {
  nd::LocalNames names;
  const std::string what = "many/" + std::to_string(nd::ownProcessId());
  UniqueFd listener;
  CHECK_EQ(names.claim(what, &listener), 0);
  constexpr uint32_t kClients = 70;
  Readiness set;
  std::vector<UniqueFd> clients(kClients), servers(kClients);
  for (uint32_t i = 0; i < kClients; i++) {
    check::note = "client", check::noteNumber = i;
    CHECK_EQ(names.connect(what, &clients[i], nullptr), 0);
    CHECK_EQ(nd::acceptLocal(listener.get(), &servers[i]), 0);
    CHECK(set.add(servers[i].get(), Readiness::kReadable | Readiness::kEnded, i));
  }
  CHECK(isQuiet(set));
  for (uint32_t i = kClients; i-- != 0;) {
    check::note = "message", check::noteNumber = i;
    char byte = static_cast<char>(i), got = 0;
    const nd::Piece piece = {&byte, 1};
    const uint64_t before = nd::monotonicNs();
    std::thread sender([&] {
      pause();
      CHECK_EQ(nd::sendLocal(clients[i].get(), &piece, 1), 0);
    });
    CHECK_EQ(takeUntil(set, i), 0);
    CHECK(nd::monotonicNs() - before < kTimeoutNs);
    sender.join();
    CHECK_EQ(nd::receiveLocal(servers[i].get(), &got, 1), 1);
    CHECK_EQ(got, byte);
  }
  CHECK(isQuiet(set));
  clients[kClients - 1].reset();
  CHECK_EQ(takeUntil(set, kClients - 1), 0);
}
