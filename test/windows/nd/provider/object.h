// COM objects: reference counts, kinds, and checks of calls. Released objects are never freed, so that calls of them
// are detected.
#pragma once
#include <unordered_map>
#include <utility>
#include "modes.h"

namespace nd2 {

/// The provider's only lock, which is recursive.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

/// Releases the lock, which this thread holds once, for a scope.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
};

enum class Kind {
  Provider,
  Factory,
  Adapter,
  CompletionQueue,
  MemoryRegion,
  MemoryWindow,
  SharedReceiveQueue,
  QueuePair,
  Connector,
  Listener,
  HollowCompletionQueue,
  HollowQueuePair,
};
constexpr int KINDS = 12;

class Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  Kind kind() const { return kind_; }
  UINT64 id() const { return id_; }
  /// Whether the client has references.
  bool held() const { return references_ > 0; }

  /// Number of references from other objects of the provider.
  void use() { uses_++; }
  void unuse();

 protected:
  /// Starts with one reference of the client.
  explicit Object(Kind kind, const void* com);
  ULONG addReference();
  ULONG releaseReference();
  /// Called when the client has released its last reference.
  virtual void released() {}
  /// Called when no object refers to it any more.
  virtual void gone() {}

 private:
  void end();
  const Kind kind_;
  const UINT64 id_;
  ULONG references_ = 1;
  ULONG uses_ = 0;
  bool live_ = true;
};

/// A reference from one object to another.
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) object_->use();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->unuse();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

/// All objects, including released ones, by the client's pointer.
std::unordered_map<const void*, Object*>& objects();
/// Referenced objects by number.
Object* objectOf(UINT64 id);
UINT32 liveObjects(const char* kind);
const char* nameOf(Kind kind);

/// Returns the object of a client's pointer, if it is of this kind and the client has a reference.
template <typename T>
T* find(const void* com) {
  const auto found = objects().find(com);
  if (found == objects().end() || found->second->kind() != T::KIND || !found->second->held()) return nullptr;
  return static_cast<T*>(found->second);
}

/// Returns the object with a number, if it is of this kind and still referenced.
template <typename T>
T* numbered(UINT64 id) {
  Object* const object = objectOf(id);
  return object != nullptr && object->kind() == T::KIND ? static_cast<T*>(object) : nullptr;
}

bool sameId(REFIID iid, const GUID& other);
/// Returns whether Create… and QueryInterface accept this IID for objects of a kind.
bool supportsIid(Kind kind, REFIID iid);

/// One call by the client. It takes the lock, counts the call, and executes deferred actions at its end.
class Call {
 public:
  Call(const Object& object, const char* method);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// Whether the call fails with `status` before it has any effect.
  bool failed() const { return failure_.has_value(); }
  HRESULT status() const { return *failure_; }

 private:
  Lock lock_;
  std::optional<HRESULT> failure_;
};

/// IUnknown of an object. The interface is the first base, so the client's pointer is the object's address.
template <typename Interface, Kind which>
class Com : public Interface, public Object {
 public:
  static constexpr Kind KIND = which;
  Com() : Object(which, static_cast<Interface*>(this)) {}

  ULONG STDMETHODCALLTYPE AddRef() override {
    const Lock lock;
    return addReference();
  }
  ULONG STDMETHODCALLTYPE Release() override {
    // Its consequences are handled before the call returns.
    const Call call(*this, "IUnknown::Release");
    return releaseReference();
  }
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    const Call call(*this, "IUnknown::QueryInterface");
    if (out == nullptr) return static_cast<HRESULT>(INVALID_PARAMETER);
    *out = nullptr;
    if (!supportsIid(which, iid)) return static_cast<HRESULT>(NO_INTERFACE);
    addReference();
    *out = static_cast<Interface*>(this);
    return S_OK;
  }
};

/// Returns a new object to the client.
template <typename T>
HRESULT give(T* object, void** out) {
  *out = static_cast<void*>(object);
  return S_OK;
}

/// Checks the IID and the output parameter of a method that creates objects. Returns S_OK or the error.
HRESULT checkMaking(Kind kind, REFIID iid, void** out);

inline HRESULT result(Status status) { return static_cast<HRESULT>(status); }

}  // namespace nd2
