#include "platform/readiness.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/alarm.h"
#include "platform/os.h"
#include "platform/windows/object.h"

namespace nd {
namespace {

constexpr uint32_t kMostHandles = MAXIMUM_WAIT_OBJECTS;

bool isSignalled(HANDLE handle) { return WaitForSingleObject(handle, 0) == WAIT_OBJECT_0; }

std::shared_ptr<Signal> makeSignal() { return std::make_shared<Signal>(CreateEventW(nullptr, TRUE, FALSE, nullptr)); }

}  // namespace

// What is in a set, and how a thread waits for all of it. The members of one process are few: its sockets, and two or three of each
// process of this host that it speaks to.
class ReadinessSet {
 public:
  bool valid() const { return changed_->handle != nullptr; }

  bool add(Descriptor descriptor, uint32_t kinds, uint64_t tag, const std::shared_ptr<ReadinessSet>& self) {
    Member member{descriptor, kinds, tag, nullptr};
    if (isObject(descriptor)) {
      member.signal = objectOf(descriptor)->signal();
    } else {
      // Of its own: the owner may close his at any time.
      HANDLE copy = nullptr;
      const HANDLE process = GetCurrentProcess();
      if (DuplicateHandle(process, handleOf(descriptor), process, &copy, SYNCHRONIZE, FALSE, 0) == 0) return false;
      member.signal = std::make_shared<Signal>(copy);
    }
    std::lock_guard<std::mutex> guard(mutex_);
    erase(descriptor);
    if (members_.size() + kReserved >= kMostHandles) return false;
    if (isObject(descriptor)) objectOf(descriptor)->set = self;
    members_.push_back(std::move(member));
    tellWaiters();
    return true;
  }

  void change(Descriptor descriptor, uint32_t kinds, uint64_t tag) {
    std::lock_guard<std::mutex> guard(mutex_);
    for (Member& m : members_) {
      if (m.descriptor != descriptor) continue;
      m.kinds = kinds;
      m.tag = tag;
      tellWaiters();
    }
  }

  void remove(Descriptor descriptor) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (erase(descriptor)) tellWaiters();
  }

  uint32_t take(Readiness::Event* events) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!anything()) return 0;
    uint32_t found = 0;
    const size_t count = members_.size();
    for (size_t i = 0; i < count && found < Readiness::kMostEvents; i++) {
      Member& m = members_[(first_ + i) % count];
      const uint32_t kinds = look(m);
      if (kinds != 0) events[found++] = {m.tag, kinds};
    }
    if (count != 0) first_ = (first_ + 1) % count;
    return found;
  }

  // What a thread has to wait for; false: there is something already.
  bool collect(std::shared_ptr<Signal>* signals, uint32_t* count) {
    std::lock_guard<std::mutex> guard(mutex_);
    for (const Member& m : members_)
      if (isObject(m.descriptor) && !objectOf(m.descriptor)->waits(m.kinds)) return false;
    signals[(*count)++] = changed_;
    for (const Member& m : members_)
      if (m.signal != nullptr && m.kinds != Readiness::kNothing) signals[(*count)++] = m.signal;
    return true;
  }

  // Its owner closes it.
  void end() {
    std::vector<Member> members;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      members.swap(members_);
      tellWaiters();
    }
    for (const Member& m : members)
      if (isObject(m.descriptor)) objectOf(m.descriptor)->set.reset();
  }

  static constexpr uint32_t kReserved = 8;  // of a wait's handles, for others

 private:
  struct Member {
    Descriptor descriptor;
    uint32_t kinds;
    uint64_t tag;
    std::shared_ptr<Signal> signal;
  };

  static uint32_t look(Member& m) {
    if (m.kinds == Readiness::kNothing) return 0;
    const bool signalled = m.signal != nullptr && isSignalled(m.signal->handle);
    if (isObject(m.descriptor)) return objectOf(m.descriptor)->look(m.kinds, signalled);
    return signalled ? Readiness::kReadable : 0u;
  }

  // One question to the system for all of them: mostly there is nothing.
  bool anything() {
    HANDLE handles[kMostHandles];
    DWORD count = 0;
    for (const Member& m : members_) {
      if (m.kinds == Readiness::kNothing) continue;
      if (isObject(m.descriptor) && !objectOf(m.descriptor)->waits(m.kinds)) return true;
      if (m.signal != nullptr) handles[count++] = m.signal->handle;
    }
    return count != 0 && WaitForMultipleObjects(count, handles, FALSE, 0) != WAIT_TIMEOUT;
  }

  bool erase(Descriptor descriptor) {
    const auto same = [&](const Member& m) { return m.descriptor == descriptor; };
    const auto found = std::find_if(members_.begin(), members_.end(), same);
    if (found == members_.end()) return false;
    members_.erase(found);
    return true;
  }

  // Those that wait for the former members begin anew. What they hold stays signalled.
  void tellWaiters() {
    SetEvent(changed_->handle);
    changed_ = makeSignal();
  }

  std::mutex mutex_;  // guards the following
  std::vector<Member> members_;
  std::shared_ptr<Signal> changed_ = makeSignal();
  size_t first_ = 0;  // begins the next take()
};

void Object::leaveSet() {
  if (const auto left = std::exchange(set, nullptr)) left->remove(reinterpret_cast<Descriptor>(this) | 1);
}

namespace {

class SetObject final : public Object {
 public:
  ~SetObject() override { members->end(); }
  const std::shared_ptr<Signal>& signal() const override { return none_; }
  uint32_t look(uint32_t, bool) override { return 0; }
  bool waits(uint32_t) const override { return true; }
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
void Readiness::change(Descriptor descriptor, uint32_t kinds, uint64_t tag) { setOf(fd_.get())->change(descriptor, kinds, tag); }
void Readiness::remove(Descriptor descriptor) {
  if (isObject(descriptor)) objectOf(descriptor)->set.reset();
  setOf(fd_.get())->remove(descriptor);
}
uint32_t Readiness::take(Event events[kMostEvents]) { return setOf(fd_.get())->take(events); }

namespace {

// The system's own timeouts are rounded up to its clock's period, some 16 ms.
HANDLE timerOfThread(uint64_t nanoseconds) {
  static thread_local Alarm timer;
  if (!timer.open()) return nullptr;
  timer.set(monotonicNs() + nanoseconds);
  return handleOf(timer.fd());
}

constexpr uint64_t kCoarseNs = 200'000'000;  // from here on the period does not matter

}  // namespace

uint32_t waitReadable(const Descriptor* descriptors, uint32_t count, uint64_t nanoseconds, int* error) {
  if (error != nullptr) *error = 0;
  std::shared_ptr<Signal> kept[kMostHandles];
  HANDLE handles[kMostHandles];
  uint8_t of[kMostHandles];  // which descriptor a handle stands for
  uint32_t known = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t first = known;
    if (!isObject(descriptors[i])) {
      handles[known++] = handleOf(descriptors[i]);
    } else if (!setOf(descriptors[i])->collect(kept, &known)) {
      nanoseconds = 0;  // a look at the others
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
  if (result >= waited) return 0;  // the time is over, or failed
  uint32_t readable = 1u << of[result];
  for (uint32_t n = result + 1; n < waited; n++)
    if (of[n] != of[result] && (readable & 1u << of[n]) == 0 && isSignalled(handles[n])) readable |= 1u << of[n];
  return readable;
}

}  // namespace nd
