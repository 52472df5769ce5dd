// Descriptors that are no handle of the system: objects of this process. Such a descriptor is the object's address with
// the lowest bit set, which no handle has.
#pragma once
#include <memory>

#include "platform/windows/system.h"

namespace nd {

// A handle that closes with its last holder: a thread that waits for it may be one.
struct Signal {
  explicit Signal(HANDLE h) : handle(h) {}
  ~Signal() {
    if (handle != nullptr) CloseHandle(handle);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  const HANDLE handle;
};

class ReadinessSet;

class Object {
 public:
  virtual ~Object() = default;
  // Signalled when there may be something. Null: the set asks without it.
  virtual const std::shared_ptr<Signal>& signal() const = 0;
  // Which of these kinds there are (Readiness::Kind). `signalled`: the signal was. From false to true, only a signal
  // tells.
  virtual uint32_t look(uint32_t kinds, bool signalled) = 0;
  // Whether look() answers something without a signal.
  virtual bool waits(uint32_t kinds) const = 0;

  // Appends what a thread has to wait for, kMostCollected at most. False: there is something already.
  static constexpr uint32_t kMostCollected = 50;
  virtual bool collect(std::shared_ptr<Signal>* signals, uint32_t* count);
  // Another one for the same, which only sends. Null: there is none.
  virtual std::unique_ptr<Object> duplicate() { return nullptr; }

  // Before it is destroyed.
  void leaveSet();

  std::shared_ptr<ReadinessSet> set;  // the one that it is in
};

inline bool isObject(Descriptor descriptor) { return descriptor > 0 && (descriptor & 1) != 0; }
inline Object* objectOf(Descriptor descriptor) { return reinterpret_cast<Object*>(descriptor & ~Descriptor{1}); }
// Closing the descriptor destroys the object.
inline UniqueFd descriptorOf(std::unique_ptr<Object> object) {
  return UniqueFd(reinterpret_cast<Descriptor>(object.release()) | 1);
}

}  // namespace nd
