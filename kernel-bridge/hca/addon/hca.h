// NativeHca: the HCA's command interface as one soft kernel holds it, and the events it sends to that kernel.
#pragma once
#include <deque>
#include <map>
#include <tuple>

#include "door.h"
#include "engine/process.h"
#include "env.h"

namespace nd::js {

// What the HCA told a kernel and the kernel has not taken yet.
struct HcaEvent {
  enum class Kind { kMad, kQp, kCq, kNotified } kind = Kind::kMad;
  PacketMeta meta;
  std::array<uint8_t, 256> mad{};
  Handle handle = 0;
  uint32_t token = 0, event = 0, reason = 0;
  // kNotified: names the waiter. The channel is only compared, never used.
  const door::Channel* channel = nullptr;
  uint32_t slot = 0, serial = 0;
  bool won = false;
};

// The engine calls it with its lock held, from any thread.
class HcaPort final : public KernelPort {
 public:
  // MADs come from the network: more than this many untaken ones are dropped, as a full QP1 receive queue would.
  static constexpr size_t kMaxMads = 4096;

  explicit HcaPort(std::shared_ptr<LoopSignal> signal) : signal_(std::move(signal)) {}
  void onMad(const PacketMeta& meta, const uint8_t mad[256]) override;
  void onQpEvent(Handle qp, uint32_t token, QpEvent event, uint32_t reason) override;
  void onCqError(Handle cq) override;
  void onNotified(const door::Channel* channel, uint32_t slot, uint32_t serial, bool won);
  bool take(HcaEvent* out);
  uint64_t droppedMads();

 private:
  void push(HcaEvent&& event);

  std::shared_ptr<LoopSignal> signal_;
  std::mutex mutex_;
  std::deque<HcaEvent> events_;
  size_t mads_ = 0;
  uint64_t droppedMads_ = 0;
  bool armed_ = true;
};

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
  Napi::Value getWireReady(const Info& info);
  Napi::Value getWireProblem(const Info& info);
  Napi::Value getLimits(const Info& info);
  Napi::Value getCommIdBase(const Info& info);
  void configure(const Info& info);
  Napi::Value takeEvent(const Info& info);

  Napi::Value allocatePd(const Info& info);
  Napi::Value deallocatePd(const Info& info);
  Napi::Value registerMr(const Info& info);
  Napi::Value deregisterMr(const Info& info);
  Napi::Value allocateMw(const Info& info);
  Napi::Value deallocateMw(const Info& info);
  Napi::Value createCq(const Info& info);
  Napi::Value resizeCq(const Info& info);
  Napi::Value destroyCq(const Info& info);
  Napi::Value createQp(const Info& info);
  Napi::Value modifyQp(const Info& info);
  Napi::Value queryQp(const Info& info);
  Napi::Value destroyQp(const Info& info);
  Napi::Value setWill(const Info& info);
  Napi::Value addCqWaiter(const Info& info);
  Napi::Value removeCqWaiter(const Info& info);
  Napi::Value sendMad(const Info& info);
  Napi::Value claimPort(const Info& info);
  void releasePort(const Info& info);
  Napi::Value counters(const Info& info);
  Napi::Value objectCounts(const Info& info);
  void close(const Info& info);

  Napi::Value handleCommand(const Info& info, Status (Engine::*command)(Handle));

  std::shared_ptr<LoopSignal> signal_;
  std::shared_ptr<HcaPort> port_;
  std::unique_ptr<LoopCallback> onEvent_;
  std::shared_ptr<Teardown> teardown_;
  std::map<WaiterKey, Waiter> waiters_;
  Engine* engine_ = nullptr;
  Host* host_ = nullptr;
  KernelId kernel_ = 0;
  bool open_ = false;
};

}  // namespace nd::js
