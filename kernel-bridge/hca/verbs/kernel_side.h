// The devices and connections of one soft kernel, for JavaScript (VerbsHca of hca/verbs-binding.ts).
#pragma once
#include "addon/command_face.h"
#include "verbs/verbs_hca.h"

namespace nd::verbs {

class KernelSide final : public Napi::ObjectWrap<KernelSide> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit KernelSide(const Napi::CallbackInfo& info);
  ~KernelSide() override;

 private:
  using Info = Napi::CallbackInfo;
  static void closeAtEnd(void* self);
  void endHost();
  void closeNow();

  Napi::Value deviceNames(const Info& info);
  Napi::Value openDevice(const Info& info);
  void closeDevice(const Info& info);
  Napi::Value queryPort(const Info& info);
  Napi::Value takeEvent(const Info& info);
  Napi::Value counters(const Info& info);
  void close(const Info&) { closeNow(); }
  Device* deviceOf(const Info& info);

  std::unique_ptr<VerbsHca> host_;
  napi_env env_;
  Napi::Reference<Napi::Value> waker_;
  js::CommandFace face_;
};

}  // namespace nd::verbs
