// The calls of the user-mode verbs provider on a program's thread, for rings, pins, doorbells and polls
// (hca/user-hca.ts).
#pragma once
#include <memory>
#include <unordered_map>

#include "addon/backing_store.h"

namespace nd::verbs {

// The state of one environment (isolate).
class UserSide {
 public:
  explicit UserSide(Napi::Env env) : env_(env) {}
  ~UserSide();
  static UserSide& of(napi_env env);
  static void define(Napi::Env env, Napi::Object exports);
  const uint32_t* doorbellWord() const { return doorbellWord_; }

 private:
  struct Pin {
    uint64_t range = 0;
    std::shared_ptr<js::V8BackingStore> store;
  };
  static Napi::Value pin(const Napi::CallbackInfo& info);
  static Napi::Value unpin(const Napi::CallbackInfo& info);
  static void endAll(void* self);
  void endBeforeBuffers();
  void drop(Pin& pin);

  Napi::Env env_;
  Napi::Reference<Napi::Uint32Array> doorbell_;
  const uint32_t* doorbellWord_ = nullptr;
  std::unordered_map<uint32_t, Pin> pins_;
  uint32_t nextPin_ = 1;
  bool hooked_ = false;
};

}  // namespace nd::verbs
