#include "backing_store.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "platform/os.h"

namespace nd::js {

namespace {

using Hold = std::shared_ptr<V8BackingStore>;

// Member functions of V8, called as functions of `this`. The Itanium C++ ABI passes `this` as the first argument, and a
// shared_ptr by a hidden pointer.
struct Functions {
  Hold (*ofArrayBuffer)(napi_value) = nullptr;
  Hold (*ofSharedArrayBuffer)(napi_value) = nullptr;
  bool (*isDetachable)(napi_value) = nullptr;  // an ArrayBuffer
  void* (*data)(const V8BackingStore*) = nullptr;
  size_t (*byteLength)(const V8BackingStore*) = nullptr;
  bool (*isResizable)(const V8BackingStore*) = nullptr;
};

template <typename Function>
bool find(const char* name, Function* out) {
  *out = reinterpret_cast<Function>(findSymbol(name));
  return *out != nullptr;
}

bool findAll(Functions* out) {
  // This mangled name shows that the runtime's shared_ptr is libstdc++'s, as ours is.
  void* newArrayBuffer = nullptr;
  // For tests of the behaviour without these functions.
  if (std::getenv("NETWORKDIRECT_WITHOUT_BACKING_STORES") != nullptr) return false;
  return find("_ZN2v811ArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE", &newArrayBuffer) &&
         find("_ZN2v811ArrayBuffer15GetBackingStoreEv", &out->ofArrayBuffer) &&
         find("_ZN2v817SharedArrayBuffer15GetBackingStoreEv", &out->ofSharedArrayBuffer) &&
         find("_ZNK2v811ArrayBuffer12IsDetachableEv", &out->isDetachable) &&
         find("_ZNK2v812BackingStore4DataEv", &out->data) &&
         find("_ZNK2v812BackingStore10ByteLengthEv", &out->byteLength) &&
         find("_ZNK2v812BackingStore27IsResizableByUserJavaScriptEv", &out->isResizable);
}

enum class Proof { kNone, kGood, kBad };

// kNone: the environment is ending and makes no buffers.
Proof prove(napi_env env, const Functions& v8) {
  constexpr size_t kBytes = 64;
  constexpr int kMark = 0x5A;
  void* memory = nullptr;
  napi_value buffer;
  if (napi_create_arraybuffer(env, kBytes, &memory, &buffer) != napi_ok) return Proof::kNone;
  std::memset(memory, kMark, kBytes);
  const Hold hold = v8.ofArrayBuffer(buffer);
  const auto isWhole = [&] {
    return v8.data(hold.get()) == memory && v8.byteLength(hold.get()) == kBytes && !v8.isResizable(hold.get());
  };
  if (hold == nullptr || hold.use_count() < 2 || !isWhole() || !v8.isDetachable(buffer)) return Proof::kBad;
  bool detached = false;
  if (napi_detach_arraybuffer(env, buffer) != napi_ok || napi_is_detached_arraybuffer(env, buffer, &detached) != napi_ok ||
      !detached) {
    return Proof::kBad;
  }
  if (hold.use_count() != 1 || !isWhole()) return Proof::kBad;
  for (size_t i = 0; i < kBytes; i++) {
    if (static_cast<const uint8_t*>(memory)[i] != kMark) return Proof::kBad;
  }
  return Proof::kGood;
}

// Null: this runtime lacks them.
const Functions* functions(napi_env env) {
  static Functions found;
  static const bool complete = findAll(&found);
  static std::atomic<Proof> proof{Proof::kNone};
  if (!complete) return nullptr;
  if (proof.load() == Proof::kNone) proof.store(prove(env, found));
  return proof.load() == Proof::kGood ? &found : nullptr;
}

}  // namespace

FoundStore backingStoreOf(napi_env env, napi_value buffer, const uint8_t* data, size_t length) {
  const Functions* v8 = functions(env);
  bool isArrayBuffer = false;
  if (v8 == nullptr || napi_is_arraybuffer(env, buffer, &isArrayBuffer) != napi_ok) return {};
  // Node.js passes a V8 handle as the value, which is the `this` of the call.
  Hold hold = isArrayBuffer ? v8->ofArrayBuffer(buffer) : v8->ofSharedArrayBuffer(buffer);
  if (hold == nullptr) return {};
  if (v8->isResizable(hold.get())) return {StoreFound::kResizable, nullptr, false};
  const uintptr_t base = reinterpret_cast<uintptr_t>(v8->data(hold.get()));
  const uintptr_t start = reinterpret_cast<uintptr_t>(data);
  const size_t bytes = v8->byteLength(hold.get());
  if (start < base || length > bytes || start - base > bytes - length) return {};
  return {StoreFound::kYes, std::move(hold), isArrayBuffer && v8->isDetachable(buffer)};
}

}  // namespace nd::js
