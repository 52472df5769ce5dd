#include "user_memory.h"

#include "backing_store.h"
#include "convert.h"
#include "platform/shared_memory.h"

namespace nd::js {

namespace {

// The ArrayBuffer of a ring holds this: the memory outlives releaseRing() as long as JavaScript can access it. The
// finalizer releases the ring if that was not done; as the memory exists until then, no other ring can have its
// address.
struct RingHold {
  std::weak_ptr<HcaContext> context;
  uint64_t address;
  std::shared_ptr<void> memory;
};

// JavaScript's references to memory of allocate(), by id, so that releasing twice does no harm. Leaked, because
// finalizers may run late.
struct SharedHolds {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<const SharedRange>> ranges;
};

SharedHolds& sharedHolds() {
  static SharedHolds* instance = new SharedHolds;
  return *instance;
}

void letGoOfShared(uint64_t id) {
  std::shared_ptr<const SharedRange> range;  // freed after the lock is released
  SharedHolds& all = sharedHolds();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto it = all.ranges.find(id);
  if (it == all.ranges.end()) return;
  range = std::move(it->second);
  all.ranges.erase(it);
}

Napi::Value pinResult(Napi::Env env, Status status, uint32_t pin = 0, uint64_t address = 0, bool detachable = false) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("status", static_cast<uint32_t>(status));
  out.Set("pin", pin);
  out.Set("address", static_cast<double>(address));
  out.Set("detachable", detachable);
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

// An ending environment runs its hooks in reverse order, and native code that has lent a buffer takes it back in such a
// hook. So ours is registered anew behind that of the newest buffer, and runs first.
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
  // The engine itself holds memory of allocate() while a range of it is pinned.
  if (backing.found == StoreFound::kUnknown && sharedRangeAt(address, length) == nullptr) {
    return pinResult(env, Status::kNotSupported);
  }
  Pin pin;
  pin.store = std::move(backing.store);
  const Status status = engine->pinRange(address, length, &pin.range);
  if (status != Status::kSuccess) return pinResult(env, status);
  Memory& self = of(env);
  self.endBeforeBuffers(env);
  while (self.nextPin_ == 0 || self.pins_.count(self.nextPin_) > 0) ++self.nextPin_;
  const uint32_t id = self.nextPin_++;
  self.pins_.emplace(id, std::move(pin));
  return pinResult(env, Status::kSuccess, id, address, backing.detachable);
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
  std::shared_ptr<const SharedRange> range;
  Status status = Status::kInvalidParameter;
  int error = 0;
  if (toUint(env, info[0], &bytes)) status = nd::allocateShared(bytes, &range, &error);
  Napi::Object out = Napi::Object::New(env);
  napi_value buffer = env.Null();
  if (status == Status::kSuccess) {
    const uint64_t id = range->id;
    void* memory = reinterpret_cast<void*>(range->base);
    SharedHolds& all = sharedHolds();
    {
      std::lock_guard<std::mutex> lock(all.mutex);
      all.ranges.emplace(id, std::move(range));
    }
    const auto finalizer = [](napi_env, void*, void* hint) { letGoOfShared(reinterpret_cast<uintptr_t>(hint)); };
    const napi_status made = napi_create_external_arraybuffer(
        env, memory, bytes, finalizer, reinterpret_cast<void*>(static_cast<uintptr_t>(id)), &buffer);
    if (made != napi_ok) {
      clearException(env);
      letGoOfShared(id);
      buffer = env.Null();
      status = made == napi_no_external_buffers_allowed ? Status::kNotSupported : Status::kNoMemory;
    }
  }
  out.Set("status", static_cast<uint32_t>(status));
  out.Set("errno", error);
  out.Set("buffer", buffer);
  return out;
}

Napi::Value Memory::allocateRing(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint64_t bytes, address = 0;
  if (!toUint(env, info[0], &bytes, kMaxRing) || bytes == 0) {
    napi_throw_range_error(env, nullptr, "allocateRing(bytes): bytes is a whole number from 1 to 2^30");
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
    napi_throw_range_error(env, nullptr, "allocateRing: there is no memory for a ring of this size");
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
