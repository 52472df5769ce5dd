// Tests of the channel between a user isolate and its soft kernel, without N-API. The threads race each other, mainly
// for the sanitizers.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>
#include <utility>
#include <vector>

#include "addon/request_channel.h"
#include "progress/parking.h"
#include "check.h"

using namespace nd::door;
using nd::Parking;

namespace {

// A thread's event loop as the channel sees it.
class Loop final : public Wake {
 public:
  void wake() override {
    std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    wakes_++;
    changed_.notify_one();
  }
  void sleep() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return woken_; });
    woken_ = false;
  }
  int wakes() {
    std::lock_guard<std::mutex> lock(mutex_);
    return wakes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  int wakes_ = 0;
};

constexpr uint32_t kEcho = 1, kPend = 2, kStop = 3;
constexpr uint32_t kCancelled = 0xC0000120;

uint32_t outputWord(const Channel& channel, uint32_t slot) {
  size_t length;
  const uint8_t* bytes = channel.output(slot, &length);
  uint32_t word = 0;
  if (length == sizeof word) std::memcpy(&word, bytes, sizeof word);
  return word;
}

int32_t submitWord(Channel& channel, uint32_t code, uint32_t word, bool overlapped) {
  uint8_t bytes[sizeof word];
  std::memcpy(bytes, &word, sizeof word);
  return channel.submit(kMajorDeviceControl, 1, code, bytes, sizeof bytes, sizeof bytes, overlapped);
}

// Echoes requests, keeps them pending and replies to cancellations, until kStop. If `race` is set, it also completes
// every pending request from `other`, a thread that stands for the HCA.
void serve(const std::shared_ptr<Channel>& channel, Loop& loop, bool race, std::atomic<int>* doubles) {
  struct Pended {
    uint32_t slot, serial;
  };
  std::vector<Pended> pended;
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (race && !stop.load()) {
      std::vector<Pended> now;
      {
        std::lock_guard<std::mutex> lock(mutex);
        now.swap(pended);
      }
      for (const Pended& p : now) channel->complete(p.slot, p.serial, 0, 0, nullptr, 0);
      std::this_thread::yield();
    }
  });
  bool running = true;
  while (running) {
    Request request;
    if (!channel->take(&request)) {
      loop.sleep();
      continue;
    }
    if (request.major == kMajorCancel) {
      channel->complete(request.slot, request.serial, kCancelled, 0, nullptr, 0);
    } else if (request.major == kMajorClose || request.code == kStop) {
      running = false;
      channel->complete(request.slot, request.serial, 0, 0, nullptr, 0);
    } else if (request.code == kPend) {
      std::lock_guard<std::mutex> lock(mutex);
      pended.push_back({request.slot, request.serial});
    } else {
      const bool first = channel->complete(request.slot, request.serial, 0, request.input.size(), request.input.data(),
                                           request.input.size());
      const bool second = channel->complete(request.slot, request.serial, 1, 0, nullptr, 0);
      if (first && second) ++*doubles;
    }
  }
  stop = true;
  other.join();
}

bool allFree(Channel& channel) {
  for (uint32_t i = 0; i < channel.slotCount(); ++i) {
    if (channel.states()[i].load() != kSlotFree) return false;
  }
  return true;
}

}  // namespace

TEST(blocking_requests_from_many_channels) {
  std::vector<std::thread> users;
  std::atomic<int> wrong{0}, doubles{0};
  for (uint32_t u = 0; u < 4; ++u) {
    users.emplace_back([&wrong, &doubles, u] {
      auto channel = Channel::create(16, nullptr);
      Loop kernelLoop;
      std::thread kernel([&] {
        auto found = Channel::find(channel->id());
        if (!found || !found->serve(std::shared_ptr<Wake>(&kernelLoop, [](Wake*) {}))) ++wrong;
        serve(channel, kernelLoop, false, &doubles);
      });
      for (uint32_t i = 0; i < 2000; ++i) {
        const int32_t slot = submitWord(*channel, kEcho, u << 16 | i, false);
        if (slot < 0 || !channel->wait(slot, -1) || channel->status(slot) != 0 ||
            outputWord(*channel, slot) != (u << 16 | i)) {
          ++wrong;
        }
        channel->release(slot);
      }
      const int32_t slot = submitWord(*channel, kStop, 0, false);
      channel->wait(slot, -1);
      channel->release(slot);
      kernel.join();
      if (!allFree(*channel)) ++wrong;
    });
  }
  for (std::thread& user : users) user.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(doubles.load(), 0);
}

// A loop whose thread waits a moment for the next request, while another thread keeps waking it for something else.
TEST(a_server_that_stays_misses_neither_requests_nor_its_loop) {
  struct Signal final : Wake {
    Parking& parking;
    Loop& loop;
    const bool parks;
    const int32_t token;
    Signal(Parking& l, Loop& woken, bool stays) : parking(l), loop(woken), parks(stays), token(l.newToken()) {}
    void wake() override {
      if (parking.unpark(token)) return;
      loop.wake();
      parking.wokeLoop(!parks);
    }
  };
  Parking parking;
  Loop loop;
  auto requests = std::make_shared<Signal>(parking, loop, true);
  Signal events(parking, loop, false);
  auto channel = Channel::create(16, nullptr);
  CHECK(channel->serve(requests));
  std::atomic<int> told{0}, seen{0};
  std::atomic<bool> stop{false};
  std::thread kernel([&] {
    bool running = true;
    while (running) {
      loop.sleep();
      seen = told.load();
      Request request;
      const auto ready = [&] { return channel->take(&request); };
      // The delay is much longer than the test takes, so that a call that nothing follows is detected.
      while (running && (ready() || parking.park(requests->token, 60'000'000, ready))) {
        running = request.code != kStop;
        channel->complete(request.slot, request.serial, 0, request.input.size(), request.input.data(),
                          request.input.size());
      }
    }
  });
  std::thread teller([&] {
    while (!stop.load()) {
      const int mine = ++told;
      events.wake();
      while (seen.load() < mine && !stop.load()) std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    const int32_t slot = submitWord(*channel, kEcho, i, false);
    if (slot < 0 || !channel->wait(slot, 20'000) || outputWord(*channel, slot) != i) ++wrong;
    channel->release(slot);
    if (wrong > 0) break;
  }
  stop = true;
  teller.join();
  const int32_t last = submitWord(*channel, kStop, 0, false);
  CHECK(channel->wait(last, 20'000));
  channel->release(last);
  kernel.join();
  CHECK_EQ(wrong, 0);
  CHECK(told.load() > 0);
}

// The same test, but the other thread notifies the server, which notices while it is busy or still waiting, and
// otherwise from its loop. No requests are sent until it has noticed, because they would bring it back anyway.
TEST(a_server_that_is_here_learns_of_a_notification) {
  struct Signal final : Wake {
    Parking& parking;
    Loop& loop;
    const bool notifies;
    const int32_t token;
    Signal(Parking& l, Loop& woken, bool k) : parking(l), loop(woken), notifies(k), token(l.newToken()) {}
    void wake() override {
      if (notifies ? parking.notify() : parking.unpark(token)) return;
      loop.wake();
      parking.wokeLoop(notifies);
    }
  };
  Parking parking;
  Loop loop;
  auto requests = std::make_shared<Signal>(parking, loop, false);
  Signal events(parking, loop, true);
  auto channel = Channel::create(16, nullptr);
  CHECK(channel->serve(requests));
  CHECK(!parking.notify());
  parking.begin(requests->token);
  CHECK(!parking.notify());  // no thread would check
  parking.end();
  parking.acceptNotifications();
  CHECK(!parking.notify() && !parking.notified());
  std::atomic<int> told{0}, seen{0}, heard{0};
  std::atomic<bool> stop{false};
  std::thread kernel([&] {
    bool running = true;
    while (running) {
      loop.sleep();
      seen = told.load();
      for (bool busy = false;;) {
        Request request;
        bool taken = false, notified = false;
        const auto ready = [&] { return (notified = parking.notified()) || (taken = channel->take(&request)); };
        bool found = ready();
        // The delay is much longer than the test takes, and sometimes there is none.
        if (!found && busy && told.load() % 5 != 0) found = parking.park(requests->token, 60'000'000, ready);
        if (!found && std::exchange(busy, false)) {
          parking.end();
          found = ready();
        }
        if (!found) break;
        if (!std::exchange(busy, true)) parking.begin(requests->token);
        if (notified) {
          ++heard;
          seen = told.load();
        }
        if (!taken) continue;
        channel->complete(request.slot, request.serial, 0, request.input.size(), request.input.data(),
                          request.input.size());
        running = request.code != kStop;
        if (!running) break;
      }
    }
  });
  std::thread teller([&] {
    while (!stop.load()) {
      const int mine = ++told;
      events.wake();
      while (seen.load() < mine && !stop.load()) std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (uint32_t i = 0; i < 20000 && wrong == 0; ++i) {
    const int32_t slot = submitWord(*channel, kEcho, i, false);
    if (slot < 0 || !channel->wait(slot, 20'000) || outputWord(*channel, slot) != i) ++wrong;
    channel->release(slot);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (const int before = told.load(); seen.load() < before && wrong == 0; std::this_thread::yield())
      if (std::chrono::steady_clock::now() > end) ++wrong;
  }
  stop = true;
  teller.join();
  const int32_t last = submitWord(*channel, kStop, 0, false);
  CHECK(channel->wait(last, 20'000));
  channel->release(last);
  kernel.join();
  CHECK_EQ(wrong, 0);
  CHECK(heard.load() > 0);
}

TEST(a_blocking_wait_ends_by_its_time) {
  auto channel = Channel::create(16, nullptr);
  const int32_t slot = submitWord(*channel, kEcho, 1, false);
  CHECK(!channel->wait(slot, 0));
  CHECK(!channel->wait(slot, 20));
  CHECK_EQ(channel->status(slot), kStatusPending);
  channel->end("test");
  CHECK(channel->wait(slot, 20));
  CHECK_EQ(channel->status(slot), kStatusDeviceRemoved);
  channel->release(slot);
}

TEST(requests_in_the_background_do_not_hold_the_loop) {
  auto channel = Channel::create(16, nullptr);
  const int32_t first = submitWord(*channel, kEcho, 1, true), second = submitWord(*channel, kEcho, 2, true);
  CHECK(channel->holdsLoop());
  channel->hold(first, false);
  channel->hold(first, false);
  CHECK(channel->holdsLoop());
  channel->hold(second, false);
  CHECK(!channel->holdsLoop());
  channel->hold(first, true);
  CHECK(channel->holdsLoop());
  channel->release(first);
  CHECK(!channel->holdsLoop());
  // A released channel no longer counts, and its slot starts afresh.
  channel->hold(first, false);
  channel->end("test");
  channel->drainCompletions([&](uint32_t slot) { channel->release(slot); });
  CHECK_EQ(channel->undelivered(), 0);
  CHECK(!channel->holdsLoop());
  CHECK(submitWord(*channel, kEcho, 3, true) >= 0);
  CHECK(channel->holdsLoop());
}

TEST(overlapped_completions_race_with_cancel_release_and_native_completion) {
  auto loop = std::make_shared<Loop>();
  auto channel = Channel::create(64, loop);
  auto kernelLoop = std::make_shared<Loop>();
  std::atomic<int> doubles{0};
  CHECK(channel->serve(kernelLoop));
  CHECK(!channel->serve(kernelLoop));
  std::thread kernel([&] { serve(channel, *kernelLoop, true, &doubles); });
  uint32_t delivered = 0, bad = 0, refused = 0;
  const auto drain = [&] {
    channel->drainCompletions([&](uint32_t slot) {
      delivered++;
      const uint32_t status = channel->status(slot);
      if (status != 0 && status != kCancelled) bad++;
      channel->release(slot);
    });
  };
  for (uint32_t i = 0; i < 20000; ++i) {
    const int32_t slot = submitWord(*channel, i % 3 == 0 ? kPend : kEcho, i, true);
    if (slot < 0) {
      refused++;  // the rest may all be abandoned, and then no completion is delivered
      drain();
      std::this_thread::yield();
      continue;
    }
    if (i % 6 == 0) channel->cancel(slot);
    if (i % 7 == 0) channel->release(slot);  // no caller polls for it
    if (i % 11 == 0 && i % 7 != 0) {
      channel->cancel(slot);
      channel->wait(slot, -1);  // the event loop's delivery may or may not follow; both are correct
      if (i % 2 == 0) channel->release(slot);
    }
  }
  while (channel->undelivered() > 0) {
    loop->sleep();
    drain();
  }
  const int32_t stop = submitWord(*channel, kStop, 0, false);
  CHECK(stop >= 0);
  channel->wait(stop, -1);
  channel->release(stop);
  kernel.join();
  CHECK_EQ(bad, 0);
  CHECK_EQ(doubles.load(), 0);
  CHECK(delivered > 0);
  CHECK(refused < 20000);
  // Requests that were abandoned and never completed end with the channel.
  channel->end("test");
  CHECK(allFree(*channel));
}

TEST(the_server_ends_while_the_user_waits) {
  for (int round = 0; round < 200; ++round) {
    auto channel = Channel::create(32, nullptr);
    auto kernelLoop = std::make_shared<Loop>();
    CHECK(channel->serve(kernelLoop));
    std::thread kernel([&] {
      Request request;
      for (int taken = 0; taken < round % 8;) {
        if (channel->take(&request)) {
          taken++;
        } else {
          kernelLoop->sleep();
        }
      }
      channel->end("the kernel has died");
    });
    for (uint32_t i = 0; i < 12; ++i) {
      const int32_t slot = submitWord(*channel, kPend, i, i % 2 == 0);
      CHECK(slot >= 0);
      if (i < 8) continue;
      CHECK(channel->wait(slot, -1));
      CHECK_EQ(channel->status(slot), kStatusDeviceRemoved);
    }
    kernel.join();
    CHECK(channel->ended());
    CHECK(channel->reason() == "the kernel has died");
    for (uint32_t slot = 0; slot < channel->slotCount(); ++slot) channel->release(slot);
    CHECK(allFree(*channel));
    CHECK_EQ(channel->undelivered(), 0);
  }
}

TEST(a_late_completion_never_hits_the_next_request) {
  auto channel = Channel::create(1, nullptr);
  CHECK(channel->serve(std::make_shared<Loop>()));
  const int32_t slot = submitWord(*channel, kPend, 1, false);
  Request first;
  CHECK(channel->take(&first));
  CHECK(channel->complete(first.slot, first.serial, 0, 0, nullptr, 0));
  channel->release(slot);
  CHECK_EQ(submitWord(*channel, kPend, 2, false), slot);
  CHECK(!channel->complete(first.slot, first.serial, 5, 0, nullptr, 0));
  CHECK_EQ(channel->status(slot), kStatusPending);
  CHECK(!channel->complete(7, 1, 0, 0, nullptr, 0));
  CHECK(!channel->complete(kNoSlot, 0, 0, 0, nullptr, 0));
}

TEST(output_is_bounded_and_discloses_nothing) {
  auto channel = Channel::create(1, nullptr);
  CHECK(channel->serve(std::make_shared<Loop>()));
  const uint8_t bytes[64] = {1};
  struct {
    uint32_t wanted;
    uint64_t information;
    size_t written, seen;
  } const cases[] = {{16, 64, 64, 16}, {64, 4096, 8, 8}, {64, 3, 8, 3}, {0, 9, 9, 0}, {0xFFFFFFFF, 64, 64, 64}};
  for (const auto& c : cases) {
    Request request;
    const int32_t slot = channel->submit(kMajorDeviceControl, 1, kEcho, nullptr, 0, c.wanted, false);
    CHECK(channel->take(&request));
    CHECK(channel->complete(request.slot, request.serial, 0, c.information, bytes, c.written));
    size_t length;
    channel->output(slot, &length);
    CHECK_EQ(length, c.seen);
    CHECK_EQ(channel->information(slot), c.information);
    channel->release(slot);
  }
  const std::vector<uint8_t> huge(kMaxInput + 1);
  const int32_t slot = channel->submit(kMajorDeviceControl, 1, kEcho, huge.data(), huge.size(), 0, false);
  CHECK_EQ(channel->status(slot), kStatusInsufficientResources);
}

TEST(closing_the_user_side_notifies_the_server_once) {
  auto channel = Channel::create(8, nullptr);
  auto kernelLoop = std::make_shared<Loop>();
  CHECK(channel->serve(kernelLoop));
  submitWord(*channel, kPend, 1, true);
  const uint32_t id = channel->id();
  channel->closeUser();
  channel->closeUser();
  Request request;
  CHECK(channel->take(&request));
  CHECK_EQ(request.major, kMajorClose);
  CHECK_EQ(request.fileId, 0);
  CHECK_EQ(request.slot, kNoSlot);
  CHECK(!channel->take(&request));
  CHECK(Channel::find(id) == channel);
  channel.reset();
  CHECK(Channel::find(id) == nullptr);
}

TEST(a_wait_can_time_out_and_be_repeated) {
  auto channel = Channel::create(8, nullptr);
  const int32_t slot = submitWord(*channel, kPend, 1, false);
  CHECK(!channel->wait(slot, 0));
  CHECK(!channel->wait(slot, 20));
  std::thread kernel([&] {
    CHECK(channel->serve(std::make_shared<Loop>()));
    Request request;
    CHECK(channel->take(&request));
    channel->complete(request.slot, request.serial, 0, 0, nullptr, 0);
  });
  CHECK(channel->wait(slot, -1));
  kernel.join();
}

TEST(wakes_are_not_repeated_for_a_loop_that_has_not_drained) {
  auto loop = std::make_shared<Loop>(), kernelLoop = std::make_shared<Loop>();
  auto channel = Channel::create(64, loop);
  CHECK(channel->serve(kernelLoop));
  Request request;
  CHECK(!channel->take(&request));
  for (uint32_t i = 0; i < 40; ++i) submitWord(*channel, kEcho, i, true);
  CHECK_EQ(kernelLoop->wakes(), 1);
  while (channel->take(&request)) channel->complete(request.slot, request.serial, 0, 0, nullptr, 0);
  CHECK_EQ(loop->wakes(), 1);
  uint32_t delivered = 0;
  channel->drainCompletions([&](uint32_t) { delivered++; });
  CHECK_EQ(delivered, 40);
}

int main(int argc, char** argv) { return check::runAll(argc, argv); }
