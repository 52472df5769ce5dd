// A host of real HCAs over the fake of rdma-core (fake_rdma/). It also does what the user-mode provider does to rings,
// so tests write WQEs and read CQEs.
#pragma once
#include <dlfcn.h>
#include <libgen.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "check.h"
#include "fake_rdma/fake.h"
#include "verbs/data_path.h"
#include "verbs/verbs_hca.h"

namespace verbstest {

using namespace nd;
using namespace nd::abi;
using nd::verbs::CmAddress;
using nd::verbs::CmParameters;
using nd::verbs::Device;
using nd::verbs::Event;
using nd::verbs::PrivateData;
using nd::verbs::RingMemory;
using nd::verbs::Rings;
using nd::verbs::VerbsHca;

// After this time nothing more will arrive.
constexpr auto kTimeout = std::chrono::seconds(30);

// The fake, which the library under test loads from the same file, in the folder of this program.
fake::Fake& theFake();

// The kernel's thread as the event thread sees it.
struct Sleeper : Waker {
  Sleeper() {
    wake = [](Waker* self) {
      auto& me = *static_cast<Sleeper*>(self);
      std::lock_guard<std::mutex> lock(me.mutex);
      ++me.wakes;
      me.woken.notify_all();
    };
  }
  std::mutex mutex;
  std::condition_variable woken;
  uint64_t wakes = 0, seen = 0;
  bool sleep(std::chrono::steady_clock::time_point until);
};

struct TestCq {
  Handle handle = 0;
  std::shared_ptr<RingMemory> memory;
  uint32_t entries = 0;
  uint32_t* words() const { return reinterpret_cast<uint32_t*>(memory->base); }
  bool dead() const { return loadWord(words() + kCqState) != 0; }
};

struct TestQp {
  Handle handle = 0;
  uint32_t qpn = 0, token = 0;
  std::shared_ptr<RingMemory> memory;
  QpCreate create;
  uint32_t* words() const { return reinterpret_cast<uint32_t*>(memory->base); }
  uint32_t state() const { return loadWord(words() + kQpState); }
};

struct TestSrq {
  Handle handle = 0;
  std::shared_ptr<RingMemory> memory;
  SrqCreate create;
  uint32_t* words() const { return reinterpret_cast<uint32_t*>(memory->base); }
};

// A send WQE with its words.
struct Wqe {
  uint32_t opcode = kOpSend, flags = kSendFlagSignaled;
  std::vector<std::pair<uint64_t, std::pair<uint32_t, uint32_t>>> sges;  // address, (length, lkey)
  std::vector<uint8_t> inlined;
  uint32_t immediate = 0, rkey = 0, access = 0;
  uint64_t remote = 0, compare = 0, swap = 0;
  uint32_t ah = 0, remoteQpn = 0, remoteQkey = 0;
};

struct Cqe {
  uint32_t words[kCqeBytes / 4];
  uint32_t token() const { return words[kCqeToken]; }
  uint32_t wqe() const { return words[kCqeWqe]; }
  uint32_t status() const { return words[kCqeStatus]; }
  uint32_t opcode() const { return words[kCqeOpcode]; }
  uint32_t flags() const { return words[kCqeFlags]; }
};

void writeSge(uint32_t* to, uint64_t address, uint32_t length, uint32_t lkey);

// Writes a WQE at the ring's end. It is not announced until the doorbell.
uint32_t write(const TestQp& qp, const Wqe& w);
uint32_t writeReceive(const TestQp& qp, uint64_t address = 0, uint32_t length = 0, uint32_t lkey = 0);
uint32_t writeReceive(const TestSrq& srq, uint64_t address = 0, uint32_t length = 0, uint32_t lkey = 0);

// Returns the CQEs that are in the ring and were not consumed, without fetching more.
std::vector<Cqe> take(const TestCq& cq);

// Fetches completions, as a poll of an empty ring does.
std::vector<Cqe> poll(const TestCq& cq);

// An event, with names for the words of its kind.
struct Seen : Event {
  Seen() = default;
  explicit Seen(Event&& taken);
  uint32_t handle = 0, token = 0, event = 0, reason = 0;
  // kCm
  int32_t status = 0;
  uint32_t listener = 0, responderResources = 0, initiatorDepth = 0, retryCount = 0, rnrRetryCount = 0, srq = 0,
           length = 0;
};

class World {
 public:
  fake::Fake& rdma = theFake();
  Sleeper sleeper;
  std::unique_ptr<VerbsHca> host;
  Device* device = nullptr;
  Handle pd = 0;
  std::vector<std::shared_ptr<RingMemory>> rings;

  explicit World(bool opened = true);
  ~World();
  void open();
  // Destroys all objects with the host.
  void close();
  std::shared_ptr<RingMemory> ring(uint64_t bytes);

  Status make(TestCq* out, uint32_t entries = 64);
  Status make(TestSrq* out, uint32_t entries = 16);
  Status make(TestQp* out, const TestCq& sendCq, const TestCq& receiveCq, const TestSrq* srq = nullptr,
              uint32_t type = kQptRc, uint32_t entries = 16);
  uint32_t initiatorDepth = 2;  // for queue pairs that are moved from now on
  QpAttributes attributes(uint32_t state) const;
  // Takes one step to a state on the way to RTS.
  Status step(const TestQp& qp, uint32_t state);
  Status run(const TestQp& qp);
  static Gid localGid();
  // Returns the next event of this kind, and drops others. kNone: none arrived.
  Seen await(Event::Kind kind);
  // Returns the events that are there.
  std::vector<Seen> events();

 private:
  uint32_t tokens_ = 100;
};

// A queue pair that is ready to send, with which most tests start.
struct Ready {
  World world;
  TestCq sendCq, receiveCq;
  TestQp qp;
  explicit Ready(uint32_t entries = 16, uint32_t type = kQptRc);
  ~Ready();
};

}  // namespace verbstest
