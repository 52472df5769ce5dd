// Devices and connections for one soft kernel, in JavaScript: VerbsHost of hca/verbs-binding.ts. Numbers cross in `words`, addresses and
// private data in `bytes`, as for the software HCA (addon/hca_words.h).
#pragma once
#include "addon/hca_words.h"
#include "verbs/host.h"

namespace nd::verbs {

class KernelSide final : public Napi::ObjectWrap<KernelSide> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit KernelSide(const Napi::CallbackInfo& info);
  ~KernelSide() override;

 private:
  using Info = Napi::CallbackInfo;
  static void closeAtEnd(void* self);
  void closeNow();

  Napi::Value getWords(const Info&) { return wordsArray_.Value(); }
  Napi::Value getBytes(const Info&) { return bytesArray_.Value(); }
  Napi::Value deviceNames(const Info& info);
  Napi::Value openDevice(const Info& info);
  void closeDevice(const Info& info);
  Napi::Value queryPort(const Info& info);
  Napi::Value takeEvent(const Info& info);
  Napi::Value counters(const Info& info);
  void close(const Info&) { closeNow(); }

  Napi::Value allocatePd(const Info& info);
  Napi::Value registerMr(const Info& info);
  Napi::Value deregisterMr(const Info& info);
  Napi::Value allocateMw(const Info& info);
  Napi::Value createCq(const Info& info);
  Napi::Value resizeCq(const Info& info);
  Napi::Value createSrq(const Info& info);
  Napi::Value modifySrq(const Info& info);
  Napi::Value querySrq(const Info& info);
  Napi::Value createQp(const Info& info);
  Napi::Value modifyQp(const Info& info);
  Napi::Value connectQp(const Info& info);
  Napi::Value queryQp(const Info& info);
  Napi::Value queryQpState(const Info& info);
  Napi::Value createAh(const Info& info);
  Napi::Value changeGroup(const Info& info);
  Napi::Value armCqOf(const Info& info);
  template <Status (Host::*kCommand)(Handle)>
  Napi::Value onHandle(const Info& info);

  Napi::Value cmCreate(const Info& info);
  void cmDestroy(const Info& info);
  Napi::Value cmBind(const Info& info);
  Napi::Value cmResolve(const Info& info);
  Napi::Value cmResolveRoute(const Info& info);
  Napi::Value cmSetOptions(const Info& info);
  Napi::Value cmListen(const Info& info);
  Napi::Value cmReject(const Info& info);
  Napi::Value cmJoin(const Info& info);
  Napi::Value cmAddresses(const Info& info);
  Napi::Value cmAttributes(const Info& info);
  template <Status (Host::*kCommand)(Handle, const CmParameters&)>
  Napi::Value onParameters(const Info& info);

  template <typename... T>
  bool numbers(const Info& info, T*... out);
  Device* deviceOf(const Info& info, size_t at);

  std::unique_ptr<Host> host_;
  napi_env env_;
  Napi::Reference<Napi::Value> waker_;
  Napi::Reference<Napi::Float64Array> wordsArray_;
  Napi::Reference<Napi::Uint8Array> bytesArray_;
  js::Words words_;
};

}  // namespace nd::verbs
