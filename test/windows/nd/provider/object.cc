#include "object.h"
#include <cstring>
#include "wire.h"

namespace nd2 {

namespace {

CRITICAL_SECTION& section() {
  static auto& one = []() -> CRITICAL_SECTION& {
    auto& made = *new CRITICAL_SECTION;
    InitializeCriticalSection(&made);
    return made;
  }();
  return one;
}

std::unordered_map<UINT64, Object*>& numbers() {
  static auto& all = *new std::unordered_map<UINT64, Object*>;
  return all;
}
UINT64 lastId = 0;

struct KindInfo {
  const char* name;
  const GUID* iid;
  bool overlapped;
};
const KindInfo& infoOf(Kind kind) {
  static const KindInfo all[KINDS] = {
      {"IND2Provider", &IID_Provider, false},
      {"IClassFactory", &IID_ClassFactory, false},
      {"IND2Adapter", &IID_Adapter, false},
      {"IND2CompletionQueue", &IID_CompletionQueue, true},
      {"IND2MemoryRegion", &IID_MemoryRegion, true},
      {"IND2MemoryWindow", &IID_MemoryWindow, false},
      {"IND2SharedReceiveQueue", &IID_SharedReceiveQueue, true},
      {"IND2QueuePair", &IID_QueuePair, false},
      {"IND2Connector", &IID_Connector, true},
      {"IND2Listener", &IID_Listener, true},
      {"hollow IND2CompletionQueue", &IID_CompletionQueue, true},
      {"hollow IND2QueuePair", &IID_QueuePair, false},
  };
  return all[static_cast<int>(kind)];
}
UINT32 live[KINDS] = {};

}  // namespace

Lock::Lock() { EnterCriticalSection(&section()); }
Lock::~Lock() { LeaveCriticalSection(&section()); }

Unlocked::Unlocked() { LeaveCriticalSection(&section()); }
Unlocked::~Unlocked() { EnterCriticalSection(&section()); }

std::unordered_map<const void*, Object*>& objects() {
  static auto& all = *new std::unordered_map<const void*, Object*>;
  return all;
}

Object* objectOf(UINT64 id) {
  const auto found = numbers().find(id);
  return found == numbers().end() ? nullptr : found->second;
}

const char* nameOf(Kind kind) { return infoOf(kind).name; }

UINT32 liveObjects(const char* kind) {
  UINT32 count = 0;
  for (int i = 0; i < KINDS; i++) {
    if (kind == nullptr || *kind == '\0' || strcmp(kind, nameOf(static_cast<Kind>(i))) == 0) count += live[i];
  }
  return count;
}

bool sameId(REFIID iid, const GUID& other) { return memcmp(&iid, &other, sizeof other) == 0; }

bool supportsIid(Kind kind, REFIID iid) {
  const KindInfo& info = infoOf(kind);
  return sameId(iid, IID_Unknown) || sameId(iid, *info.iid) || (info.overlapped && sameId(iid, IID_Overlapped));
}

Object::Object(Kind kind, const void* com) : kind_(kind), id_(++lastId) {
  objects()[com] = this;
  numbers()[id_] = this;
  live[static_cast<int>(kind)]++;
}

ULONG Object::addReference() {
  if (references_ == 0) violation("AddRef of a released %s", nameOf(kind_));
  return ++references_;
}

ULONG Object::releaseReference() {
  if (references_ == 0) return 0;  // reported by the call
  if (--references_ > 0) return references_;
  use();
  released();
  unuse();
  return 0;
}

void Object::unuse() {
  if (--uses_ == 0 && references_ == 0) end();
}

void Object::end() {
  if (!live_) return;
  live_ = false;
  live[static_cast<int>(kind_)]--;
  numbers().erase(id_);
  gone();
}

Call::Call(const Object& object, const char* method) {
  entered(method);
  if (!object.held()) {
    violation("a released %s is called", nameOf(object.kind()));
    failure_ = result(INVALID_HANDLE);
    return;
  }
  failure_ = injectedFailure(method);
  const bool alive = strncmp(method, "IUnknown", 8) == 0 || object.kind() == Kind::Provider;
  if (!failure_ && modes.removed != 0 && !alive) failure_ = result(DEVICE_REMOVED);
}

Call::~Call() { deliverLocally(); }

HRESULT checkMaking(Kind kind, REFIID iid, void** out) {
  if (out == nullptr) {
    violation("a null pointer for the object");
    return result(INVALID_PARAMETER);
  }
  *out = nullptr;
  if (sameId(iid, IID_Unknown) || sameId(iid, *infoOf(kind).iid)) return S_OK;
  violation("an iid that is not %s", nameOf(kind));
  return result(NO_INTERFACE);
}

}  // namespace nd2
