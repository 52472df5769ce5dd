// NativeHca: the software HCA as one soft kernel sees it. Commands that every HCA has belong to its face
// (command_face.h). Its own commands are in hca.cc and hca_waiters.cc, its events in hca_events.cc, and its statistics
// in observing.cc.
#pragma once
#include <map>
#include <tuple>

#include "command_face.h"
#include "cq_events.h"
#include "hca_events.h"

namespace nd::js {

class NativeHca final : public Napi::ObjectWrap<NativeHca>, public Closable {
 public:
  static Napi::Function define(Napi::Env env);
  static Napi::Value openHca(const Napi::CallbackInfo& info);
  explicit NativeHca(const Napi::CallbackInfo& info);
  ~NativeHca() override;
  Rank rank() const override { return Rank::kHca; }
  void closeNow() override;

 private:
  using Info = Napi::CallbackInfo;
  using WaiterKey = std::tuple<const door::Channel*, uint32_t, uint32_t>;
  struct Waiter {
    Handle cq;
    std::shared_ptr<NotifySink> sink;
  };

  Napi::Value getKernelId(const Info& info);
  Napi::Value getSlot(const Info& info);
  Napi::Value getPeerExtensions(const Info& info);
  Napi::Value getHostLink(const Info& info);
  Napi::Value getWire(const Info& info);
  Napi::Value getWireProblem(const Info& info);
  Napi::Value getLimits(const Info& info);
  Napi::Value getCommIdBase(const Info& info);
  void configure(const Info& info);
  Napi::Value takeEvent(const Info& info);
  Napi::Value setPkeyTable(const Info& info);
  Napi::Value addCqWaiter(const Info& info);
  Napi::Value removeCqWaiter(const Info& info);
  void endCqEvents(const Info& info);
  Napi::Value sendMad(const Info& info);
  Napi::Value claimPort(const Info& info);
  Napi::Value openWire(const Info& info);
  Napi::Value openPort(const Info& info);
  void releasePort(const Info& info);
  Napi::Value counters(const Info& info);
  Napi::Value objectCounts(const Info& info);
  Napi::Value statistics(const Info& info);
  void replyToObserver(const Info& info);
  void close(const Info& info);

  std::shared_ptr<LoopSignal> signal_;
  std::shared_ptr<HcaPort> port_;
  std::unique_ptr<LoopCallback> onEvent_;
  std::shared_ptr<Teardown> teardown_;
  std::map<WaiterKey, Waiter> waiters_;
  std::map<Handle, std::vector<std::shared_ptr<CqEvents>>> cqEvents_;  // one for each channel that requested events
  CommandFace face_;
  std::shared_ptr<HcaContext> context_;
  Engine* engine_ = nullptr;  // the engine of context_
  Host* host_ = nullptr;
  KernelId kernel_ = 0;
  bool open_ = false;
};

}  // namespace nd::js
