#include "user_memory.h"

#include "backing_store.h"
#include "convert.h"
#include "platform/mapping.h"
#include "platform/os.h"
#include "platform/pages.h"
#include "platform/shared_memory.h"

namespace nd::js {

namespace {

// Held by the ArrayBuffer of a ring, so that the memory exists after releaseRing() for as long as JavaScript can access
// it. The finalizer releases the ring if nothing else has done so. Since the memory exists until then, no other ring
// can have its address.
struct RingHold {
  std::weak_ptr<HcaContext> context;
  uint64_t address;
  std::shared_ptr<void> memory;
};

// JavaScript's references to allocate() memory and to views, by number, so that a second release is harmless. The table
// is leaked, because finalizers may run late.
struct SharedHolds {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<const void>> memory;
  uint64_t next = 1;
};

SharedHolds& sharedHolds() {
  static SharedHolds* instance = new SharedHolds;
  return *instance;
}

void releaseShared(uint64_t number) {
  std::shared_ptr<const void> memory;  // freed after the lock is released
  SharedHolds& all = sharedHolds();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto it = all.memory.find(number);
  if (it == all.memory.end()) return;
  memory = std::move(it->second);
  all.memory.erase(it);
}

// node_api_create_external_sharedarraybuffer of Node.js 24.16 and 26.1. Its finalizer may run on any thread.
using CreateShared = napi_status (*)(napi_env, void* bytes, size_t length, void (*)(void* bytes, void* hint),
                                     void* hint, napi_value* result);
CreateShared createShared() {
  static const auto found = reinterpret_cast<CreateShared>(findSymbol("node_api_create_external_sharedarraybuffer"));
  return found;
}

// Creates an ArrayBuffer or SharedArrayBuffer over these bytes, which holds `owner`. Fails with kNotSupported if this
// runtime has no external buffers.
Status makeBuffer(napi_env env, void* bytes, uint64_t length, std::shared_ptr<const void> owner, bool shared,
                  napi_value* buffer) {
  uint64_t number;
  SharedHolds& all = sharedHolds();
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    number = all.next++;
    all.memory.emplace(number, std::move(owner));
  }
  void* const held = reinterpret_cast<void*>(static_cast<uintptr_t>(number));
  napi_status made;
  if (shared) {
    keepLibraryLoaded();  // threads that have the buffer may outlive the thread that loaded the addon
    const auto end = [](void*, void* hint) { releaseShared(reinterpret_cast<uintptr_t>(hint)); };
    made = createShared()(env, bytes, length, end, held, buffer);
  } else {
    const auto end = [](napi_env, void*, void* hint) { releaseShared(reinterpret_cast<uintptr_t>(hint)); };
    made = napi_create_external_arraybuffer(env, bytes, length, end, held, buffer);
  }
  if (made == napi_ok) return Status::kSuccess;
  clearException(env);
  releaseShared(number);
  return made == napi_no_external_buffers_allowed ? Status::kNotSupported : Status::kNoMemory;
}

// A view: a peer's memory mapped for this process alone. The number of views is limited here. Their bytes count as
// external memory of V8, like those of any buffer.
class PeerView {
 public:
  ~PeerView() { count_.fetch_sub(1, std::memory_order_relaxed); }
  PeerView(const PeerView&) = delete;
  PeerView& operator=(const PeerView&) = delete;
  // Returns null if there are too many views.
  static std::shared_ptr<PeerView> make() {
    const uint32_t before = count_.fetch_add(1, std::memory_order_relaxed);
    std::shared_ptr<PeerView> view(new PeerView);
    return before < kMostViews ? view : nullptr;
  }
  Mapping pages;

 private:
  PeerView() = default;
  static std::atomic<uint32_t> count_;
};

std::atomic<uint32_t> PeerView::count_{0};

// Returns the bytes of a part as a Uint8Array. Its buffer may begin up to 7 bytes earlier, at an 8-byte boundary of the
// peer's memory, as BigInt64Array requires.
Status makeView(napi_env env, const FilePart& part, napi_value* bytes) {
  constexpr uint64_t kAlignment = 8;
  const std::shared_ptr<PeerView> view = PeerView::make();
  if (view == nullptr || !part.fd.valid()) return Status::kInsufficientResources;
  if (!view->pages.openView(part)) return Status::kNoMemory;
  const uint64_t inPage = part.offset % pageBytes(), before = part.offset % kAlignment;
  napi_value buffer;
  uint8_t* const start = static_cast<uint8_t*>(view->pages.get()) + inPage - before;
  const Status status = makeBuffer(env, start, before + part.length, view, false, &buffer);
  if (status != Status::kSuccess) return status;
  const napi_status made = napi_create_typedarray(env, napi_uint8_array, part.length, buffer, before, bytes);
  if (made == napi_ok) return Status::kSuccess;
  clearException(env);
  return Status::kNoMemory;
}

Napi::Value pinResult(Napi::Env env, Status status, uint32_t pin = 0, uint64_t address = 0, bool detachable = false,
                      bool allocated = false) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("status", static_cast<uint32_t>(status));
  out.Set("pin", pin);
  out.Set("address", static_cast<double>(address));
  out.Set("detachable", detachable);
  out.Set("allocated", allocated);
  return out;
}

}  // namespace

Memory& Memory::of(Napi::Env env) { return static_cast<Memory&>(*EnvData::of(env).memory); }

Memory::Memory(EnvData& data) : data_(data), teardown_(data.teardown()) { teardown_->items.insert(this); }

Memory::~Memory() { teardown_->items.erase(this); }

// The HCA releases the memory first.
void Memory::closeNow() {
  Engine* engine = data_.engine();
  for (auto& [id, pin] : pins_) {
    if (engine != nullptr) engine->unpinRange(pin.range);
  }
  pins_.clear();
}

// An ending environment runs its hooks in reverse order, and native code that has lent a buffer revokes it in such a
// hook. The hook of this addon is therefore registered anew after that of the newest buffer, so that it runs first.
void Memory::endBeforeBuffers(napi_env env) {
  const auto atEnd = [](void* self) { static_cast<Memory*>(self)->closeNow(); };
  if (hooked_) napi_remove_env_cleanup_hook(env, atEnd, this);
  hooked_ = napi_add_env_cleanup_hook(env, atEnd, this) == napi_ok;
}

Napi::Value Memory::pin(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Engine* engine = EnvData::of(env).engine();
  if (engine == nullptr) return pinResult(env, Status::kInvalidDeviceState);
  bool isTyped = false;
  napi_value buffer = nullptr;
  Bytes bytes;
  if (napi_is_typedarray(env, info[0], &isTyped) != napi_ok || !isTyped ||
      napi_get_typedarray_info(env, info[0], nullptr, nullptr, nullptr, &buffer, nullptr) != napi_ok ||
      !toBytes(env, info[0], &bytes) || bytes.length == 0) {
    return pinResult(env, Status::kInvalidParameter);
  }
  const uint64_t address = reinterpret_cast<uintptr_t>(bytes.data), length = bytes.length;
  FoundStore backing = backingStoreOf(env, buffer, bytes.data, bytes.length);
  if (backing.found == StoreFound::kResizable) return pinResult(env, Status::kInvalidParameter);
  // The engine itself holds allocate() memory while a range of it is pinned.
  const bool allocated = sharedRangeAt(address, length) != nullptr;
  if (backing.found == StoreFound::kUnknown && !allocated) return pinResult(env, Status::kNotSupported);
  Pin pin;
  pin.store = std::move(backing.store);
  const Status status = engine->pinRange(address, length, &pin.range);
  if (status != Status::kSuccess) return pinResult(env, status);
  Memory& self = of(env);
  self.endBeforeBuffers(env);
  while (self.nextPin_ == 0 || self.pins_.count(self.nextPin_) > 0) ++self.nextPin_;
  const uint32_t id = self.nextPin_++;
  self.pins_.emplace(id, std::move(pin));
  return pinResult(env, Status::kSuccess, id, address, backing.detachable, allocated);
}

Napi::Value Memory::unpin(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t id;
  Memory& self = of(env);
  if (!toU32(env, info[0], &id)) return env.Undefined();
  auto it = self.pins_.find(id);
  if (it == self.pins_.end()) return env.Undefined();
  if (Engine* engine = self.data_.engine()) engine->unpinRange(it->second.range);
  self.pins_.erase(it);
  return env.Undefined();
}

Napi::Value Memory::allocateShared(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint64_t bytes = 0;
  bool shared = false;
  std::shared_ptr<const SharedRange> range;
  Status status = Status::kInvalidParameter;
  int error = 0;
  if (toUint(env, info[0], &bytes) && toBool(env, info[1], &shared))
    status = shared && createShared() == nullptr ? Status::kNotSupported : nd::allocateShared(bytes, &range, &error);
  Napi::Object out = Napi::Object::New(env);
  napi_value buffer = env.Null();
  if (status == Status::kSuccess) {
    void* const memory = reinterpret_cast<void*>(range->base);
    status = makeBuffer(env, memory, bytes, std::move(range), shared, &buffer);
    if (status != Status::kSuccess) buffer = env.Null();
  }
  out.Set("status", static_cast<uint32_t>(status));
  out.Set("errno", error);
  out.Set("buffer", buffer);
  return out;
}

// view(remoteLow, remoteHigh, rkey, length): the queue pair is the one in `doorbell`.
Napi::Value Memory::view(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const EnvData& own = EnvData::of(env);
  Engine* const engine = own.engine();
  uint32_t low = 0, high = 0, rkey = 0;
  uint64_t length = 0;
  Status status = Status::kSuccess;
  DirectResult result = DirectResult::kRefused;
  napi_value bytes = env.Null();
  if (engine != nullptr && toU32(env, info[0], &low) && toU32(env, info[1], &high) && toU32(env, info[2], &rkey) &&
      toUint(env, info[3], &length)) {
    FilePart part;
    result = engine->view(*own.doorbellWord, length, uint64_t{high} << 32 | low, rkey, &part);
    if (result == DirectResult::kDone) status = makeView(env, part, &bytes);
  }
  Napi::Object out = Napi::Object::New(env);
  out.Set("status", static_cast<uint32_t>(status));
  out.Set("result", static_cast<uint32_t>(result));
  out.Set("bytes", bytes);
  return out;
}

Napi::Value Memory::allocateRing(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint64_t bytes, address = 0;
  if (!toUint(env, info[0], &bytes, kMaxRing) || bytes == 0) {
    napi_throw_range_error(env, nullptr, "allocateRing(bytes): `bytes` must be an integer from 1 to 2^30");
    return env.Undefined();
  }
  const std::shared_ptr<HcaContext>& context = EnvData::of(env).context;
  Engine* engine = EnvData::of(env).engine();
  if (engine == nullptr) {
    napi_throw_error(env, nullptr, "allocateRing: the HCA is not open; open a device file first");
    return env.Undefined();
  }
  const Status status = engine->allocateRing(bytes, &address);
  if (status != Status::kSuccess) {
    napi_throw_range_error(env, nullptr, "allocateRing: cannot allocate a ring of this size");
    return env.Undefined();
  }
  auto* hold = new RingHold{context, address, engine->ringMemory(address)};
  Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(
      env, reinterpret_cast<void*>(address), bytes,
      [](Napi::Env, void*, RingHold* ring) {
        if (const std::shared_ptr<HcaContext> owner = ring->context.lock()) owner->engine()->releaseRing(ring->address);
        delete ring;
      },
      hold);
  Napi::Object out = Napi::Object::New(env);
  out.Set("buffer", buffer);
  out.Set("address", static_cast<double>(address));
  return out;
}

Napi::Value Memory::releaseRing(const Napi::CallbackInfo& info) {
  uint64_t address;
  Engine* engine = EnvData::of(info.Env()).engine();
  if (engine != nullptr && toUint(info.Env(), info[0], &address)) engine->releaseRing(address);
  return info.Env().Undefined();
}

}  // namespace nd::js
