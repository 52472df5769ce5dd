// Descriptors that are not Windows handles but objects of this process. Such a descriptor is the object's address with
// the lowest bit set, which no handle has.
#pragma once
#include <memory>

#include "platform/windows/system.h"

namespace nd {

// A handle that its last holder, which may be a waiting thread, closes.
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
  // The handle that is signalled when the object may be ready. Null if the set checks it without a signal.
  virtual const std::shared_ptr<Signal>& signal() const = 0;
  // Returns which of these kinds are ready (Readiness::Kind). `signalled`: whether the signal was set. Only a signal
  // announces that a kind has become ready.
  virtual uint32_t readyKinds(uint32_t kinds, bool signalled) = 0;
  // Returns whether readyKinds() can report something without a signal.
  virtual bool waits(uint32_t kinds) const = 0;

  // Appends the signals for which a thread has to wait, at most kMostCollected. Returns false if the object is ready
  // already.
  static constexpr uint32_t kMostCollected = 50;
  virtual bool collect(std::shared_ptr<Signal>* signals, uint32_t* count);
  // Returns a duplicate that can only send, or null if that is not supported.
  virtual std::unique_ptr<Object> duplicate() { return nullptr; }

  // Called before it is destroyed.
  void leaveSet();

  std::shared_ptr<ReadinessSet> set;  // the set it belongs to
};

inline bool isObject(Descriptor descriptor) { return descriptor > 0 && (descriptor & 1) != 0; }
inline Object* objectOf(Descriptor descriptor) { return reinterpret_cast<Object*>(descriptor & ~Descriptor{1}); }
// Closing the descriptor destroys the object.
inline UniqueFd descriptorOf(std::unique_ptr<Object> object) {
  return UniqueFd(reinterpret_cast<Descriptor>(object.release()) | 1);
}

}  // namespace nd
