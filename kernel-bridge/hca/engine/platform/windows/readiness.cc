#include "platform/readiness.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/alarm.h"
#include "platform/os.h"
#include "platform/windows/descriptor_object.h"

namespace nd {
namespace {

constexpr uint32_t kMostHandles = MAXIMUM_WAIT_OBJECTS;

bool isSignalled(HANDLE handle) { return WaitForSingleObject(handle, 0) == WAIT_OBJECT_0; }

std::shared_ptr<Signal> makeSignal() { return std::make_shared<Signal>(CreateEventW(nullptr, TRUE, FALSE, nullptr)); }

}  // namespace

// A member watched by a thread-pool thread of Windows, because a waiting thread cannot wait for that many handles. It
// is watched until its handle is signalled once.
class Watched {
 public:
  Watched(std::shared_ptr<Signal> handle, std::shared_ptr<Signal> ready)
      : handle_(std::move(handle)), ready_(std::move(ready)) {}
  // Waits for a callback that may be running.
  ~Watched() { stop(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // Starts watching, unless it already does. Returns false if resources are exhausted.
  bool watch() {
    if (wait_ != nullptr && !seen_.load(std::memory_order_acquire)) return true;
    stop();
    seen_.store(false, std::memory_order_relaxed);
    if (RegisterWaitForSingleObject(&wait_, handle_->handle, &Watched::onSignalled, this, INFINITE,
                                    WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD) != 0)
      return true;
    wait_ = nullptr;
    return false;
  }

 private:
  static void CALLBACK onSignalled(void* self, BOOLEAN) {
    auto* const watched = static_cast<Watched*>(self);
    watched->seen_.store(true, std::memory_order_release);
    SetEvent(watched->ready_->handle);
  }
  void stop() {
    if (wait_ != nullptr) UnregisterWaitEx(wait_, INVALID_HANDLE_VALUE);
    wait_ = nullptr;
  }
  const std::shared_ptr<Signal> handle_, ready_;
  HANDLE wait_ = nullptr;
  std::atomic<bool> seen_{false};
};

// The members of a set. A thread waits for the first kDirect of them directly, and for the others through an event that
// thread-pool threads signal. The first ones are the process's sockets, and two or three for each process on this host
// with which it communicates. A completion port cannot replace this: only an undocumented call binds events of other
// processes to one.
class ReadinessSet {
 public:
  bool valid() const { return changed_->handle != nullptr && others_->handle != nullptr; }

  bool add(Descriptor descriptor, uint32_t kinds, uint64_t tag, const std::shared_ptr<ReadinessSet>& self) {
    Member member{descriptor, kinds, tag, nullptr, nullptr};
    if (isObject(descriptor)) {
      member.signal = objectOf(descriptor)->signal();
    } else {
      // A duplicate, because the owner may close its handle at any time.
      HANDLE copy = nullptr;
      const HANDLE process = GetCurrentProcess();
      if (DuplicateHandle(process, handleOf(descriptor), process, &copy, SYNCHRONIZE, FALSE, 0) == 0) return false;
      member.signal = std::make_shared<Signal>(copy);
    }
    std::lock_guard<std::mutex> guard(mutex_);
    erase(descriptor);
    if (isObject(descriptor)) objectOf(descriptor)->set = self;
    members_.push_back(std::move(member));
    notifyWaiters();
    return true;
  }

  void change(Descriptor descriptor, uint32_t kinds, uint64_t tag) {
    std::lock_guard<std::mutex> guard(mutex_);
    for (Member& m : members_) {
      if (m.descriptor != descriptor) continue;
      m.kinds = kinds;
      m.tag = tag;
      notifyWaiters();
    }
  }

  void remove(Descriptor descriptor) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (erase(descriptor)) notifyWaiters();
  }

  uint32_t take(Readiness::Event* events) {
    std::lock_guard<std::mutex> guard(mutex_);
    ResetEvent(others_->handle);  // those that were signalled are checked now, and watched again
    if (!anything()) return 0;
    uint32_t found = 0;
    const size_t count = members_.size();
    for (size_t i = 0; i < count && found < Readiness::kMostEvents; i++) {
      Member& m = members_[(first_ + i) % count];
      const uint32_t kinds = readyKinds(m);
      if (kinds != 0) events[found++] = {m.tag, kinds};
    }
    if (count != 0) first_ = (first_ + 1) % count;
    watchOthers();
    return found;
  }

  // Collects the signals for which a thread has to wait. Returns false if something is ready already.
  bool collect(std::shared_ptr<Signal>* signals, uint32_t* count) {
    std::lock_guard<std::mutex> guard(mutex_);
    for (const Member& m : members_)
      if (isObject(m.descriptor) && !objectOf(m.descriptor)->waits(m.kinds)) return false;
    signals[(*count)++] = changed_;
    signals[(*count)++] = others_;
    const size_t direct = std::min<size_t>(members_.size(), kDirect);
    for (size_t i = 0; i < direct; i++) {
      const Member& m = members_[i];
      if (m.signal != nullptr && m.kinds != Readiness::kNothing) signals[(*count)++] = m.signal;
    }
    return watchOthers();
  }

  // Called when the owner of the set closes it.
  void end() {
    std::vector<Member> members;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      members.swap(members_);
      notifyWaiters();
    }
    for (const Member& m : members)
      if (isObject(m.descriptor)) objectOf(m.descriptor)->set.reset();
  }

 private:
  struct Member {
    Descriptor descriptor;
    uint32_t kinds;
    uint64_t tag;
    std::shared_ptr<Signal> signal;
    std::unique_ptr<Watched> watched;  // null: not needed so far
  };
  static constexpr size_t kDirect = Object::kMostCollected - 2;

  // Watches the members for which no thread waits directly. Returns false if one of them cannot be watched, so that no
  // thread may sleep.
  bool watchOthers() {
    bool all = true;
    for (size_t i = kDirect; i < members_.size(); i++) {
      Member& m = members_[i];
      if (m.signal == nullptr || m.kinds == Readiness::kNothing) {
        m.watched.reset();
        continue;
      }
      if (m.watched == nullptr) m.watched = std::make_unique<Watched>(m.signal, others_);
      all = m.watched->watch() && all;
    }
    return all;
  }

  static uint32_t readyKinds(Member& m) {
    if (m.kinds == Readiness::kNothing) return 0;
    const bool signalled = m.signal != nullptr && isSignalled(m.signal->handle);
    if (isObject(m.descriptor)) return objectOf(m.descriptor)->readyKinds(m.kinds, signalled);
    return signalled ? Readiness::kReadable : 0u;
  }

  // Queries as many of them in one call as Windows allows, because usually nothing is ready.
  bool anything() {
    HANDLE handles[kMostHandles];
    DWORD count = 0;
    const auto poll = [&] {
      return count != 0 && WaitForMultipleObjects(std::exchange(count, 0), handles, FALSE, 0) != WAIT_TIMEOUT;
    };
    for (const Member& m : members_) {
      if (m.kinds == Readiness::kNothing) continue;
      if (isObject(m.descriptor) && !objectOf(m.descriptor)->waits(m.kinds)) return true;
      if (m.signal != nullptr) handles[count++] = m.signal->handle;
      if (count == kMostHandles && poll()) return true;
    }
    return poll();
  }

  bool erase(Descriptor descriptor) {
    const auto same = [&](const Member& m) { return m.descriptor == descriptor; };
    const auto found = std::find_if(members_.begin(), members_.end(), same);
    if (found == members_.end()) return false;
    members_.erase(found);
    return true;
  }

  // Restarts the waits for the former members. Their state stays signalled.
  void notifyWaiters() {
    SetEvent(changed_->handle);
    changed_ = makeSignal();
  }

  std::mutex mutex_;  // protects the following
  std::vector<Member> members_;
  std::shared_ptr<Signal> changed_ = makeSignal();
  const std::shared_ptr<Signal> others_ = makeSignal();  // a member that no thread waits for directly was signalled
  size_t first_ = 0;                                     // where the next take() starts
};

void Object::leaveSet() {
  if (const auto left = std::exchange(set, nullptr)) left->remove(reinterpret_cast<Descriptor>(this) | 1);
}

bool Object::collect(std::shared_ptr<Signal>* signals, uint32_t* count) {
  if (!waits(Readiness::kReadable | Readiness::kEnded)) return false;
  signals[(*count)++] = signal();
  return true;
}

namespace {

class SetObject final : public Object {
 public:
  ~SetObject() override { members->end(); }
  const std::shared_ptr<Signal>& signal() const override { return none_; }
  uint32_t readyKinds(uint32_t, bool) override { return 0; }
  bool waits(uint32_t) const override { return true; }
  bool collect(std::shared_ptr<Signal>* signals, uint32_t* count) override { return members->collect(signals, count); }
  const std::shared_ptr<ReadinessSet> members = std::make_shared<ReadinessSet>();

 private:
  const std::shared_ptr<Signal> none_;
};

const std::shared_ptr<ReadinessSet>& setOf(Descriptor descriptor) {
  return static_cast<const SetObject*>(objectOf(descriptor))->members;
}

UniqueFd makeSet() {
  auto set = std::make_unique<SetObject>();
  return set->members->valid() ? descriptorOf(std::unique_ptr<Object>(std::move(set))) : UniqueFd();
}

}  // namespace

Readiness::Readiness() : fd_(makeSet()) {}

bool Readiness::add(Descriptor descriptor, uint32_t kinds, uint64_t tag) {
  const std::shared_ptr<ReadinessSet>& set = setOf(fd_.get());
  return set->add(descriptor, kinds, tag, set);
}
void Readiness::change(Descriptor descriptor, uint32_t kinds, uint64_t tag) {
  setOf(fd_.get())->change(descriptor, kinds, tag);
}
void Readiness::remove(Descriptor descriptor) {
  if (isObject(descriptor)) objectOf(descriptor)->set.reset();
  setOf(fd_.get())->remove(descriptor);
}
uint32_t Readiness::take(Event events[kMostEvents]) { return setOf(fd_.get())->take(events); }

namespace {

// Windows rounds timeouts up to its clock period of about 16 ms.
HANDLE timerOfThread(uint64_t nanoseconds) {
  static thread_local Alarm timer;
  if (!timer.open()) return nullptr;
  timer.set(monotonicNs() + nanoseconds);
  return handleOf(timer.fd());
}

constexpr uint64_t kCoarseNs = 200'000'000;  // above this the period does not matter

}  // namespace

uint32_t waitReadable(const Descriptor* descriptors, uint32_t count, uint64_t nanoseconds, int* error) {
  if (error != nullptr) *error = 0;
  std::shared_ptr<Signal> kept[kMostHandles];
  HANDLE handles[kMostHandles];
  uint8_t of[kMostHandles];  // the descriptor that a handle stands for
  uint32_t known = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t first = known;
    if (!isObject(descriptors[i])) {
      handles[known++] = handleOf(descriptors[i]);
    } else if (!objectOf(descriptors[i])->collect(kept, &known)) {
      nanoseconds = 0;  // check the others
      known = first;
      const uint32_t others = i == 0 ? 0 : waitReadable(descriptors, i, 0, error);
      return others | 1u << i;
    }
    for (uint32_t n = first; n < known; n++) {
      if (kept[n] != nullptr) handles[n] = kept[n]->handle;
      of[n] = static_cast<uint8_t>(i);
    }
  }
  const uint32_t waited = known;
  DWORD milliseconds = INFINITE;
  if (nanoseconds == 0) {
    milliseconds = 0;
  } else if (nanoseconds < kCoarseNs) {
    if (const HANDLE timer = timerOfThread(nanoseconds)) handles[known++] = timer;
    milliseconds = known > waited ? INFINITE : static_cast<DWORD>(nanoseconds / 1'000'000 + 1);
  } else if (nanoseconds != UINT64_MAX) {
    milliseconds = static_cast<DWORD>(std::min<uint64_t>(nanoseconds / 1'000'000, INFINITE - 1));
  }
  const DWORD result = WaitForMultipleObjects(known, handles, FALSE, milliseconds);
  if (result == WAIT_FAILED && error != nullptr) *error = GetLastError() == ERROR_INVALID_HANDLE ? EBADF : EIO;
  if (result >= waited) return 0;  // timed out, or failed
  uint32_t readable = 1u << of[result];
  for (uint32_t n = result + 1; n < waited; n++)
    if (of[n] != of[result] && (readable & 1u << of[n]) == 0 && isSignalled(handles[n])) readable |= 1u << of[n];
  return readable;
}

}  // namespace nd
