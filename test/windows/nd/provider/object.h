// COM objects: references, kinds, and who may be called. An object whose client has released it is never freed, so that
// a call of it can be told from a call of another.
#pragma once
#include <unordered_map>
#include <utility>
#include "modes.h"

namespace nd2 {

/// The provider's only lock. A thread may have it more than once.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

/// Releases the lock that this thread has once.
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
  /// The client has references.
  bool held() const { return references_ > 0; }

  /// Uses by other objects of the provider.
  void use() { uses_++; }
  void unuse();

 protected:
  /// Starts with a reference of the client.
  explicit Object(Kind kind, const void* com);
  ULONG addReference();
  ULONG releaseReference();
  /// The client's last reference has gone.
  virtual void released() {}
  /// Nothing refers to it any more.
  virtual void gone() {}

 private:
  void end();
  const Kind kind_;
  const UINT64 id_;
  ULONG references_ = 1;
  ULONG uses_ = 0;
  bool live_ = true;
};

/// A use of an object by another.
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

/// Objects by the pointer that the client has, those that were released included.
std::unordered_map<const void*, Object*>& objects();
/// Objects that are used, by their number.
Object* objectOf(UINT64 id);
UINT32 liveObjects(const char* kind);
const char* nameOf(Kind kind);

/// The object behind a client's pointer, if it is of this kind and the client has a reference.
template <typename T>
T* find(const void* com) {
  const auto found = objects().find(com);
  if (found == objects().end() || found->second->kind() != T::KIND || !found->second->held()) return nullptr;
  return static_cast<T*>(found->second);
}

/// The object with a number, if it is of this kind and still used.
template <typename T>
T* numbered(UINT64 id) {
  Object* const object = objectOf(id);
  return object != nullptr && object->kind() == T::KIND ? static_cast<T*>(object) : nullptr;
}

bool sameId(REFIID iid, const GUID& other);
/// An iid that a Create… or QueryInterface may name for an object of a kind.
bool answersTo(Kind kind, REFIID iid);

/// One call of a method by the client: takes the lock, counts the call, and lets what it has caused happen at its end.
class Call {
 public:
  Call(const Object& object, const char* method);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// It fails before it does anything, with `status`.
  bool failed() const { return failure_.has_value(); }
  HRESULT status() const { return *failure_; }

 private:
  Lock lock_;
  std::optional<HRESULT> failure_;
};

/// IUnknown of an object. The interface is its first base, so a client's pointer to it is the object's.
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
    // What its end causes happens before the call returns.
    const Call call(*this, "IUnknown::Release");
    return releaseReference();
  }
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    const Call call(*this, "IUnknown::QueryInterface");
    if (out == nullptr) return static_cast<HRESULT>(INVALID_PARAMETER);
    *out = nullptr;
    if (!answersTo(which, iid)) return static_cast<HRESULT>(NO_INTERFACE);
    addReference();
    *out = static_cast<Interface*>(this);
    return S_OK;
  }
};

/// Hands a new object to the client.
template <typename T>
HRESULT give(T* object, void** out) {
  *out = static_cast<void*>(object);
  return S_OK;
}

/// Checks iid and out-parameter of a method that makes objects: S_OK, or what it fails with.
HRESULT checkMaking(Kind kind, REFIID iid, void** out);

inline HRESULT result(Status status) { return static_cast<HRESULT>(status); }

}  // namespace nd2
