#include "verbs/user_side.h"

#include "addon/convert.h"
#include "verbs/verbs_hca.h"

namespace nd::verbs {

namespace {

using js::Bytes;
using js::kMaxRing;
using js::toU32;
using js::toUint;

// The data path uses plain N-API, without arguments or allocation.
napi_value ringDoorbell(napi_env env, napi_callback_info) {
  ringSends(*UserSide::of(env).doorbellWord());
  return nullptr;
}

napi_value ringReceiveDoorbell(napi_env env, napi_callback_info) {
  ringReceives(*UserSide::of(env).doorbellWord());
  return nullptr;
}

napi_value progressOf(napi_env env, napi_callback_info) {
  progress(*UserSide::of(env).doorbellWord());
  return nullptr;
}

Napi::Value armCqOf(const Napi::CallbackInfo& info) {
  Handle cq;
  bool solicitedOnly;
  const bool good = toU32(info.Env(), info[0], &cq) && js::toBool(info.Env(), info[1], &solicitedOnly);
  return js::statusToJs(info.Env(), good ? armCq(cq, solicitedOnly) : Status::kInvalidParameter);
}

Napi::Value armCqBatchOf(const Napi::CallbackInfo& info) {
  Handle cq;
  uint32_t count;
  const bool good = toU32(info.Env(), info[0], &cq) && toU32(info.Env(), info[1], &count);
  return js::statusToJs(info.Env(), good ? armCqBatch(cq, count) : Status::kInvalidParameter);
}

Napi::Value allocateRing(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint64_t bytes;
  if (!toUint(env, info[0], &bytes, kMaxRing) || bytes == 0) {
    napi_throw_range_error(env, nullptr, "allocateRing(bytes): `bytes` must be an integer from 1 to 2^30");
    return env.Undefined();
  }
  std::shared_ptr<RingMemory> memory = Rings::all().allocate(bytes);
  if (memory == nullptr) {
    napi_throw_range_error(env, nullptr, "allocateRing: cannot allocate a ring of this size");
    return env.Undefined();
  }
  const uint64_t address = reinterpret_cast<uintptr_t>(memory->base);
  // The memory stays as long as JavaScript can access it. The finalizer releases the ring if nothing else has done so.
  auto* hold = new std::shared_ptr<RingMemory>(std::move(memory));
  Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(
      env, reinterpret_cast<void*>(address), bytes,
      [](Napi::Env, void* data, std::shared_ptr<RingMemory>* held) {
        Rings::all().release(reinterpret_cast<uintptr_t>(data));
        delete held;
      },
      hold);
  Napi::Object out = Napi::Object::New(env);
  out.Set("buffer", buffer);
  out.Set("address", static_cast<double>(address));
  return out;
}

Napi::Value releaseRing(const Napi::CallbackInfo& info) {
  uint64_t address;
  if (toUint(info.Env(), info[0], &address)) Rings::all().release(address);
  return info.Env().Undefined();
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

UserSide& UserSide::of(napi_env env) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  return *static_cast<UserSide*>(data);
}

UserSide::~UserSide() { endAll(this); }

void UserSide::drop(Pin& pin) {
  // Devices release the memory before its owner does.
  endRegistrations(pin.range);
  Ranges::all().remove(pin.range);
  pin.store.reset();
}

void UserSide::endAll(void* self) {
  auto& pins = static_cast<UserSide*>(self)->pins_;
  for (auto& [id, pin] : pins) static_cast<UserSide*>(self)->drop(pin);
  pins.clear();
}

// As Memory::endBeforeBuffers in the software HCA's addon, this makes the hook of this addon run before those of native
// code that has lent a buffer.
void UserSide::endBeforeBuffers() {
  if (hooked_) napi_remove_env_cleanup_hook(env_, endAll, this);
  hooked_ = napi_add_env_cleanup_hook(env_, endAll, this) == napi_ok;
}

Napi::Value UserSide::pin(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  bool isTyped = false;
  napi_value buffer = nullptr;
  Bytes bytes;
  if (napi_is_typedarray(env, info[0], &isTyped) != napi_ok || !isTyped ||
      napi_get_typedarray_info(env, info[0], nullptr, nullptr, nullptr, &buffer, nullptr) != napi_ok ||
      !js::toBytes(env, info[0], &bytes) || bytes.length == 0) {
    return pinResult(env, Status::kInvalidParameter);
  }
  js::FoundStore backing = js::backingStoreOf(env, buffer, bytes.data, bytes.length);
  if (backing.found == js::StoreFound::kResizable) return pinResult(env, Status::kInvalidParameter);
  if (backing.found == js::StoreFound::kUnknown) return pinResult(env, Status::kNotSupported);
  const uint64_t address = reinterpret_cast<uintptr_t>(bytes.data);
  UserSide& self = of(env);
  Pin pin;
  pin.range = Ranges::all().add(address, bytes.length);
  pin.store = std::move(backing.store);
  self.endBeforeBuffers();
  while (self.nextPin_ == 0 || self.pins_.count(self.nextPin_) > 0) ++self.nextPin_;
  const uint32_t id = self.nextPin_++;
  self.pins_.emplace(id, std::move(pin));
  return pinResult(env, Status::kSuccess, id, address, backing.detachable);
}

Napi::Value UserSide::unpin(const Napi::CallbackInfo& info) {
  uint32_t id;
  UserSide& self = of(info.Env());
  if (!toU32(info.Env(), info[0], &id)) return info.Env().Undefined();
  const auto it = self.pins_.find(id);
  if (it == self.pins_.end()) return info.Env().Undefined();
  self.drop(it->second);
  self.pins_.erase(it);
  return info.Env().Undefined();
}

void UserSide::define(Napi::Env env, Napi::Object exports) {
  auto* self = new UserSide(env);
  env.SetInstanceData(self);  // deleted with the environment
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("allocateRing", allocateRing);
  add("releaseRing", releaseRing);
  add("pin", pin);
  add("unpin", unpin);
  add("armCq", armCqOf);
  add("armCqBatch", armCqBatchOf);
  const auto addPlain = [&](const char* name, napi_callback function) {
    napi_value made;
    if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &made) == napi_ok)
      exports.Set(name, Napi::Value(env, made));
  };
  addPlain("ringDoorbell", ringDoorbell);
  addPlain("ringReceiveDoorbell", ringReceiveDoorbell);
  addPlain("progress", progressOf);
  Napi::Uint32Array doorbell = Napi::Uint32Array::New(env, 1);
  self->doorbell_ = Napi::Persistent(doorbell);
  self->doorbellWord_ = doorbell.Data();
  exports.Set("doorbell", doorbell);
}

}  // namespace nd::verbs
