// User-side memory that the HCA may access: pinned buffers and the shared rings.
#pragma once
#include "backing_store.h"
#include "env.h"

namespace nd::js {

class Memory final : public Closable {
 public:
  static Memory& of(Napi::Env env);
  explicit Memory(EnvData& data);
  ~Memory() override;
  Rank rank() const override { return Rank::kMemory; }
  void closeNow() override;

  static Napi::Value pin(const Napi::CallbackInfo& info);
  static Napi::Value unpin(const Napi::CallbackInfo& info);
  static Napi::Value allocateShared(const Napi::CallbackInfo& info);
  static Napi::Value view(const Napi::CallbackInfo& info);
  static Napi::Value allocateRing(const Napi::CallbackInfo& info);
  static Napi::Value releaseRing(const Napi::CallbackInfo& info);

 private:
  struct Pin {
    uint64_t range = 0;
    std::shared_ptr<V8BackingStore> store;  // null: allocate() memory, which the engine holds
  };
  void endBeforeBuffers(napi_env env);

  EnvData& data_;
  std::shared_ptr<Teardown> teardown_;
  std::unordered_map<uint32_t, Pin> pins_;
  uint32_t nextPin_ = 1;
  bool hooked_ = false;
};

}  // namespace nd::js
