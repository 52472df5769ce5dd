// NativeHca: the HCA's command interface for one soft kernel. Its commands are in hca_memory.cc, hca_cq.cc, hca_srq.cc,
// hca_qp.cc, hca_datagram.cc and hca_pkeys.cc, its events in hca_events.cc, its statistics in observing.cc, the rest in hca.cc.
#pragma once
#include <map>
#include <tuple>

#include "cq_events.h"
#include "hca_events.h"
#include "hca_words.h"

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
  Napi::Value getWireReady(const Info& info);
  Napi::Value getWireProblem(const Info& info);
  Napi::Value getLimits(const Info& info);
  Napi::Value getCommIdBase(const Info& info);
  Napi::Value getWords(const Info&) { return wordsArray_.Value(); }
  Napi::Value getBytes(const Info&) { return bytesArray_.Value(); }
  void configure(const Info& info);
  Napi::Value takeEventWords(const Info& info);

  Napi::Value allocatePd(const Info& info);
  Napi::Value deallocatePd(const Info& info);
  Napi::Value registerMr(const Info& info);
  Napi::Value allocateMr(const Info& info);
  Napi::Value deregisterMr(const Info& info);
  Napi::Value allocateMw(const Info& info);
  Napi::Value deallocateMw(const Info& info);
  Napi::Value createCq(const Info& info);
  Napi::Value resizeCq(const Info& info);
  Napi::Value destroyCq(const Info& info);
  Napi::Value createSrqWords(const Info& info);
  Napi::Value modifySrqWords(const Info& info);
  Napi::Value querySrq(const Info& info);
  Napi::Value destroySrq(const Info& info);
  Napi::Value createQpWords(const Info& info);
  Napi::Value modifyQpWords(const Info& info);
  Napi::Value connectQpWords(const Info& info);
  Napi::Value queryQp(const Info& info);
  Napi::Value queryQpState(const Info& info);
  Napi::Value destroyQp(const Info& info);
  Napi::Value setWillWords(const Info& info);
  Napi::Value listenCq(const Info& info);
  Napi::Value armCq(const Info& info);
  Napi::Value createAhWords(const Info& info);
  Napi::Value destroyAh(const Info& info);
  Napi::Value attachMulticast(const Info& info);
  Napi::Value detachMulticast(const Info& info);
  Napi::Value createPkeyTable(const Info& info);
  Napi::Value setPkeyTable(const Info& info);
  Napi::Value queryPkeyTable(const Info& info);
  Napi::Value destroyPkeyTable(const Info& info);
  Napi::Value addCqWaiter(const Info& info);
  Napi::Value removeCqWaiter(const Info& info);
  void endCqEvents(const Info& info);
  Napi::Value sendMadWords(const Info& info);
  Napi::Value claimPortWords(const Info& info);
  Napi::Value openPort(const Info& info);
  void releasePort(const Info& info);
  Napi::Value counters(const Info& info);
  Napi::Value objectCounts(const Info& info);
  Napi::Value statistics(const Info& info);
  void answerObserver(const Info& info);
  void close(const Info& info);

  Napi::Value handleCommand(const Info& info, Status (Engine::*command)(Handle));
  Napi::Value groupCommand(const Info& info, Status (Engine::*command)(Handle, const Gid&, uint32_t));

  std::shared_ptr<LoopSignal> signal_;
  std::shared_ptr<HcaPort> port_;
  std::unique_ptr<LoopCallback> onEvent_;
  std::shared_ptr<Teardown> teardown_;
  std::map<WaiterKey, Waiter> waiters_;
  std::map<Handle, std::vector<std::shared_ptr<CqEvents>>> cqEvents_;  // one for each channel that requested events
  Napi::Reference<Napi::Float64Array> wordsArray_;
  Napi::Reference<Napi::Uint8Array> bytesArray_;
  Words words_;  // views of these two
  std::shared_ptr<HcaContext> context_;
  Engine* engine_ = nullptr;  // of context_
  Host* host_ = nullptr;
  KernelId kernel_ = 0;
  bool open_ = false;
};

}  // namespace nd::js
