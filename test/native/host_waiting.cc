// Tests of program threads that own progress while they wait (progress/waiting_thread.h), together with the engine's
// thread and polling threads. No arrival is missed, whichever thread sleeps, and no thread relies on one that has the
// claim but does not run.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include <thread>

#include "host_side.h"
#include "platform/thread.h"
#include "progress/waiting_thread.h"
#include "progress/spin_payoff.h"
#include "progress/owner.h"
#include "progress/poll_hint.h"

using namespace hosttest;

namespace {

constexpr uint32_t kMessage = 64;

void ring(int fd) {
  const uint64_t one = 1;
  if (write(fd, &one, sizeof one) < 0) std::abort();
}

// Waits for the completions of a side as a blocked thread does.
struct Waiting {
  struct Sink final : NotifySink {
    explicit Sink(int f) : fd(f) {}
    void notify(Status) override {
      done = true;
      ring(fd);
    }
    bool watches() const override { return true; }
    const int fd;
    std::atomic<bool> done{false};
  };
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  WaitingThread thread{hca().progress(), [](void* self) { ring(*static_cast<int*>(self)); }, &fd};
  const bool spins;                // spins before it sleeps
  uint32_t owned = 0, served = 0;  // number of sleeps
  uint32_t awake = 0;              // number of waits without a sleep

  explicit Waiting(bool spinning = false) : spins(spinning) {}
  ~Waiting() {
    thread.leave();
    close(fd);
  }
  // Returns the status of the next completion; 99 if there is none.
  uint32_t next(Side& side, uint32_t cqe[16]) {
    while (!side.completion(cqe)) {
      auto sink = std::make_shared<Sink>(fd);
      HOST_CHECK(side.engine.addCqWaiter(side.cq, kCqNotifyAny, sink) == Status::kSuccess);
      HOST_CHECK(side.engine.armCq(side.cq, false) == Status::kSuccess);
      const bool came = sleepUntil(*sink);
      side.engine.removeCqWaiter(side.cq, sink.get());
      if (!came) return 99;
    }
    return cqe[kCqeStatus];
  }

 private:
  bool sleepUntil(const Sink& sink) {
    const auto done = [&] { return sink.done.load(); };
    bool came = true;
    while (came && !done()) {
      const WaitingThread::Entry entry = thread.enter(done, spins);
      if (entry == WaitingThread::Entry::kDone) awake++;
      if (entry == WaitingThread::Entry::kDone) break;
      const bool owns = entry == WaitingThread::Entry::kSleep;
      (owns ? owned : served)++;
      pollfd fds[2] = {{fd, POLLIN, 0}, {thread.descriptor(), POLLIN, 0}};
      came = ::poll(fds, owns ? 2 : 1, kTimeoutMs) > 0;
      uint64_t rings;
      if (fds[0].revents != 0 && read(fd, &rings, sizeof rings) < 0) rings = 0;
    }
    thread.leave();
    return came;
  }
};

// Connected queue pairs in two processes. The other process echoes messages, for which it waits asleep ('e') or spins
// before it sleeps ('l'), or writes to this side's memory as often as it is commanded ('w').
int peerMain() {
  startProcess();
  char how = 0;
  Hello other{};
  if (read(0, &how, 1) != 1 || read(0, &other, sizeof other) != sizeof other) return 2;
  Side side;
  for (uint32_t i = 0; i < 16; i++) side.postReceive(i * kMessage, kMessage);
  side.connect(other, 4096);
  const Hello own = side.hello();
  if (write(1, &own, sizeof own) != sizeof own) return 2;
  Waiting waiting(how == 'l');
  uint32_t cqe[16];
  if (how == 'w') {
    for (char word; read(0, &word, 1) == 1;) {
      side.post(kOpWrite, 0, 8, other.address, other.rkey);
      word = waiting.next(side, cqe) == kWcSuccess ? 'y' : 'n';
      if (write(1, &word, 1) != 1) return 2;
    }
    return hosttest::failures;
  }
  for (uint32_t echoed = 0;;) {
    // The other side's process or queue pair ends.
    if (waiting.next(side, cqe) != kWcSuccess) return hosttest::failures;
    if ((cqe[kCqeFlags] & kCqeFlagReceiveQueue) == 0) continue;
    const uint32_t offset = echoed++ % 16 * kMessage;
    side.post(kOpSend, offset, cqe[kCqeLength]);
    side.postReceive(offset, kMessage);
  }
}

struct Peer : Child {
  Hello hello{};
  Peer(char how, Side& side) {
    const Hello own = side.hello();
    HOST_CHECK(write(in, &how, 1) == 1 && write(in, &own, sizeof own) == sizeof own);
    HOST_CHECK(read(out, &hello, sizeof hello) == sizeof hello);
    side.connect(hello, 4096);
  }
  ~Peer() {
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    close(in);
    close(out);
  }
};

// Runs round trips with both sides asleep in between. Now and then this thread does something else before it waits, for
// longer than a mark is valid, so that the engine's thread takes over and is displaced again.
void play(Side& side, Waiting& waiting, uint32_t rounds) {
  uint32_t cqe[16];
  for (uint32_t n = 0; n < rounds; n++) {
    side.memory[0] = static_cast<uint8_t>(n);
    side.postReceive(1u << 20, kMessage);
    side.post(kOpSend, 0, 8);
    if (n % 64 == 0)
      for (const uint64_t end = clockNow() + 2 * progress::kMarkNs; clockNow() < end;) sched_yield();
    for (int i = 0; i < 2; i++) {
      const uint32_t status = waiting.next(side, cqe);
      HOST_CHECK(status == kWcSuccess);
      if (status != kWcSuccess) return;
    }
    HOST_CHECK(side.memory[1u << 20] == static_cast<uint8_t>(n));
  }
}

void waiters(uint32_t rounds) {
  Side side;
  Peer peer('e', side);
  Waiting waiting;
  play(side, waiting, rounds);
  // The waiting thread has received messages itself. Their number depends on the scheduler, because the engine's thread
  // receives those that arrive while this thread does not run.
  for (uint32_t n = 0; n < 100 && waiting.owned + waiting.awake == 0; n++) play(side, waiting, rounds);
  HOST_CHECK(waiting.owned + waiting.awake != 0);
}

// Threads spin before they sleep. Some messages arrive before a sleep, others end one.
void spinningWaits(uint32_t rounds) {
  Side side;
  Peer peer('l', side);
  Waiting waiting(true);
  play(side, waiting, rounds);
}

// A thread spins for as long as that is worthwhile, and tries ever less often otherwise.
void spinPayoff() {
  SpinPayoff spin;
  const auto passes = [&] {
    uint32_t n = 0;
    while (!spin.pays()) n++;
    return n;
  };
  HOST_CHECK(passes() == 0);
  for (uint32_t n = 1; n < 4 * progress::kMostSkips; n *= 2) {
    spin.failed();
    HOST_CHECK(passes() == std::min(n, progress::kMostSkips));
  }
  spin.found(1000);
  HOST_CHECK(passes() == 0);
  spin.failed();
  HOST_CHECK(passes() == 1);
  // An arrival after an interruption counts as no result, because others need the CPU.
  for (uint32_t n = 2; n < 4 * progress::kMostSkips; n *= 2) {
    spin.found(progress::kPreemptionNs + 1);
    HOST_CHECK(passes() == std::min(n, progress::kMostSkips));
  }
  spin.found(progress::kPreemptionNs);
  HOST_CHECK(passes() == 0);
}

// A program that polls between turns of its event loop does so for kLoopSpinNs, as long as that brings completions.
void pollHint() {
  PollHint hint;
  uint64_t now = 1'000'000;
  uint32_t taken = 0;
  const uint64_t step = progress::kLoopSpinNs / 10;
  // Returns the number of polls of a wait without a result; 1: it did not spin.
  const auto inVain = [&] {
    uint32_t polls = 1;
    for (; hint.shouldPoll(taken, now); now += step) polls++;
    return polls;
  };
  const auto waitsWithoutSpin = [&] {
    uint32_t n = 0;
    while (inVain() == 1) n++;
    return n;
  };
  // Spins until a poll after that time, and the last one.
  HOST_CHECK(inVain() == 12);
  for (uint32_t n = 1; n < 4 * progress::kMostSkips; n *= 2)
    HOST_CHECK(waitsWithoutSpin() == std::min(n, progress::kMostSkips));
  // A completion that is there at the first poll says nothing about spinning.
  for (uint32_t n = 0; n < progress::kMostSkips; n++) HOST_CHECK(!hint.shouldPoll(taken++, now));
  for (uint32_t n = 0; n < 10; n++) HOST_CHECK(hint.shouldPoll(taken++, now));
  HOST_CHECK(inVain() == 12 && waitsWithoutSpin() == progress::kMostSkips);
  for (uint32_t n = 0; n < progress::kMostSkips; n++) HOST_CHECK(inVain() == 1);
  // Completions are found by spinning, so it pays again.
  for (uint32_t n = 0; n < 10; n++) {
    HOST_CHECK(hint.shouldPoll(taken, now));
    HOST_CHECK(hint.shouldPoll(taken, now += step));
    taken++;
  }
  HOST_CHECK(inVain() == 12 && inVain() == 1 && inVain() == 12);
  // Other threads had the CPU before the completion, so others need it.
  HOST_CHECK(inVain() == 1 && inVain() == 1);
  HOST_CHECK(hint.shouldPoll(taken, now) && hint.shouldPoll(taken, now += progress::kPreemptionNs + 1));
  taken++;
  HOST_CHECK(!hint.shouldPoll(taken, now));
}

// Another thread polls now and then, handles what is for others, and leaves in the middle of it.
void besidePollers(uint32_t rounds) {
  Side side, other;
  Peer peer('e', side);
  Waiting waiting;
  std::atomic<bool> stop{false};
  std::thread poller([&] {
    for (uint32_t burst = 1; !stop; burst = burst * 7 % 1021 + 1) {
      for (uint32_t i = 0; i < burst; i++) other.engine.progress();
      for (uint32_t i = 0; i < burst; i++) sched_yield();
    }
  });
  play(side, waiting, rounds);
  stop = true;
  poller.join();
}

// The thread has the claim, and does not run.
void claim(Waiting& waiting) {
  const auto never = [] { return false; };
  while (waiting.thread.enter(never, false) != WaitingThread::Entry::kSleep) waiting.thread.leave();
}

// Two threads of one process wait; one of them has the claim, and leaves without notifying the other.
void twoWait(uint32_t rounds) {
  Side a, b;
  Peer peerA('e', a), peerB('e', b);
  Waiting waitingA, waitingB;
  std::thread second([&] { play(b, waitingB, rounds / 2); });
  play(a, waitingA, rounds);
  second.join();
  play(b, waitingB, rounds / 2);
  HOST_CHECK(waitingA.owned != 0 && waitingB.owned != 0);
  const uint32_t served = waitingB.served;
  claim(waitingA);
  for (const uint64_t end = clockNow() + kTimeoutNs; waitingB.served == served && clockNow() < end;)
    play(b, waitingB, 20);
  HOST_CHECK(waitingB.served > served);
}

// A thread has the claim, and computes instead of responding to a wake-up.
void claimsAndDoesNotCome() {
  Side side;
  Peer peer('w', side);
  Waiting waiting;
  claim(waiting);
  for (int i = 0; i < 50; i++) {
    char word = 'w';
    HOST_CHECK(write(peer.in, &word, 1) == 1);
    HOST_CHECK(read(peer.out, &word, 1) == 1 && word == 'y');
  }
  // The thread may not even have seen that the descriptor was readable. The engine's thread, which cleared that state,
  // notified it.
  HOST_CHECK(readable(waiting.fd, kTimeoutMs));
}

// While this object exists, all threads of this process share one CPU.
struct OneProcessor {
  cpu_set_t before;
  OneProcessor() {
    HOST_CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    place(one);
  }
  ~OneProcessor() { place(before); }

 private:
  static void place(const cpu_set_t& set) {
    DIR* const tasks = opendir("/proc/self/task");
    for (const dirent* e = readdir(tasks); e != nullptr; e = readdir(tasks))
      if (e->d_name[0] != '.') sched_setaffinity(std::atoi(e->d_name), sizeof set, &set);
    closedir(tasks);
  }
};

// A thread that starts with `first` and then computes until this object is destroyed.
struct Computing {
  std::atomic<bool> stop{false};
  std::atomic<ThreadId> id{0};
  std::thread thread;
  template <typename First>
  explicit Computing(First first) {
    thread = std::thread([this, first] {
      first();
      id = currentThread();
      while (!stop) {}
    });
    while (id == 0) sched_yield();
  }
  ~Computing() { end(); }
  void end() {
    stop = true;
    if (thread.joinable()) thread.join();
  }
};

// A thread that is ready but has no CPU is distinguished from one that runs, waits, or has ended.
void whoLacksAProcessor() {
  HOST_CHECK(!lacksProcessor(currentThread()));
  HOST_CHECK(!lacksProcessor(0) && processorTimeNs(0) == 0);
  int ends[2];
  HOST_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  std::atomic<ThreadId> id{0};
  std::thread waits([&] {
    id = currentThread();
    char byte;
    HOST_CHECK(read(ends[0], &byte, 1) == 1);
  });
  // The thread may not have reached its read() yet.
  const auto sleeps = [&] { return id != 0 && !lacksProcessor(id); };
  for (const uint64_t end = clockNow() + kTimeoutNs; !sleeps() && clockNow() < end;) sched_yield();
  HOST_CHECK(sleeps());
  HOST_CHECK(write(ends[1], "", 1) == 1);
  waits.join();
  close(ends[0]);
  close(ends[1]);
  HOST_CHECK(!lacksProcessor(id));
  const OneProcessor one;
  Computing computing([] {});
  HOST_CHECK(lacksProcessor(computing.id));  // this thread has the only CPU
  const uint64_t used = processorTimeNs(computing.id);
  HOST_CHECK(used != 0);
  for (const uint64_t end = clockNow() + kTimeoutNs; processorTimeNs(computing.id) == used && clockNow() < end;)
    sched_yield();
  HOST_CHECK(processorTimeNs(computing.id) > used);
  computing.end();
  HOST_CHECK(!lacksProcessor(computing.id));
}

// A thread has the claim, or polls, and then computes on the only CPU. Whenever the engine's thread checks, that thread
// seems to lack the CPU. The engine's thread does not wait for it.
void computesOnTheOnlyProcessor() {
  Side side;
  Peer peer('w', side);
  Waiting waiting;
  const auto writes = [&] {
    for (int i = 0; i < 20; i++) {
      char word = 'w';
      HOST_CHECK(write(peer.in, &word, 1) == 1);
      HOST_CHECK(read(peer.out, &word, 1) == 1 && word == 'y');
    }
  };
  for (int round = 0; round < 3; round++) {
    const OneProcessor one;
    {
      const Computing computing([&] { claim(waiting); });
      writes();
    }
    waiting.thread.leave();
    const Computing computing([&] {
      for (const uint64_t end = clockNow() + 2 * progress::kMarkNs; clockNow() < end;) side.engine.progress();
    });
    writes();
  }
}

uint64_t left(const ProgressOwner& owner) {
  itimerspec at{};
  timerfd_gettime(owner.alarm(), &at);
  return static_cast<uint64_t>(at.it_value.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(at.it_value.tv_nsec);
}

// Marks in the second half of the alarm's time postpone the alarm to their end. No mark does once the thread is awake.
void alarmIsPutOff() {
  constexpr uint64_t kHour = 3'600'000'000'000u;
  const struct : Clock {
    uint64_t now() const override { return clockNow(); }
  } clock;
  ProgressOwner owner(clock);
  HOST_CHECK(owner.open());
  const uint64_t start = clockNow();
  owner.sleepUntil(start + kHour);
  owner.poll(start + kHour / 2);
  HOST_CHECK(left(owner) <= kHour);
  owner.poll(start + 2 * kHour);
  HOST_CHECK(left(owner) > kHour && left(owner) <= 2 * kHour + progress::kMarkNs);
  HOST_CHECK(owner.thread() == currentThread());
  owner.wokeUp();
  owner.poll(start + 3 * kHour);
  HOST_CHECK(owner.marked() == start + 3 * kHour);
  HOST_CHECK(left(owner) <= 2 * kHour + progress::kMarkNs);
  // Marks that are valid for longer postpone the alarm for as long.
  for (uint64_t valid = progress::kMarkNs; valid < progress::kMostMarkNs; valid *= 2) {
    HOST_CHECK(owner.markNs() == valid);
    owner.trustLonger();
  }
  owner.trustLonger();
  HOST_CHECK(owner.markNs() == progress::kMostMarkNs);
  owner.sleepUntil(start + kHour);
  owner.poll(start + 4 * kHour);
  HOST_CHECK(left(owner) > 4 * kHour - kHour / 2 && left(owner) <= 4 * kHour + progress::kMostMarkNs);
  owner.trustLess();
  HOST_CHECK(owner.markNs() == progress::kMarkNs);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "peer") == 0) return peerMain();
  signal(SIGPIPE, SIG_IGN);
  hosttest::privateNetwork();
  startProcess();
  const uint32_t rounds = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 2000;
  waiters(rounds);
  spinningWaits(rounds);
  spinPayoff();
  pollHint();
  besidePollers(rounds);
  twoWait(rounds);
  claimsAndDoesNotCome();
  whoLacksAProcessor();
  computesOnTheOnlyProcessor();
  alarmIsPutOff();
  return hosttest::finish("host_waiting");
}
