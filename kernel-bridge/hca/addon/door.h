// The JavaScript classes of a channel: NativeChannel (user side) and NativeChannelServer (kernel side).
#pragma once
#include "request_channel.h"
#include "env.h"
#include "loop_wait.h"

namespace nd::js {

class NativeChannel final : public Napi::ObjectWrap<NativeChannel>, public Closable {
 public:
  static Napi::Function define(Napi::Env env);
  static Napi::Value createChannel(const Napi::CallbackInfo& info);
  explicit NativeChannel(const Napi::CallbackInfo& info);
  ~NativeChannel() override;
  Rank rank() const override { return Rank::kChannel; }
  void closeNow() override;

 private:
  // Returns this thread's watch on the HCA, or null if it cannot watch.
  LoopWait* loopWait();
  BlockedWait* blockedWait();
  bool slotOf(const Napi::CallbackInfo& info, uint32_t* slot);
  void updateKeepAlive();
  void deliver();

  Napi::Value getId(const Napi::CallbackInfo& info);
  Napi::Value getStates(const Napi::CallbackInfo& info);
  Napi::Value getCacheEpoch(const Napi::CallbackInfo&) { return cacheEpoch_.Value(); }
  Napi::Value getProblem(const Napi::CallbackInfo& info);
  Napi::Value getAnswer(const Napi::CallbackInfo&) { return answer_.Value(); }
  Napi::Value getAnswerBytes(const Napi::CallbackInfo&) { return answerBytes_.Value(); }
  Napi::Value submit(const Napi::CallbackInfo& info);
  Napi::Value call(const Napi::CallbackInfo& info);
  Napi::Value finish(const Napi::CallbackInfo& info);
  Napi::Value nextCompletion(const Napi::CallbackInfo& info);
  // Copies the reply of a completed slot into the words and bytes, and releases the slot. With kCallLong the slot is
  // kept.
  uint32_t takeAnswer(uint32_t slot);
  Napi::Value wait(const Napi::CallbackInfo& info);
  enum class Waited { kDone, kTimedOut, kStopped };
  // kStopped: V8 has to stop this thread, and the request continues.
  Waited waitFor(uint32_t slot, int64_t timeoutMs);
  Napi::Value waitAndFinish(const Napi::CallbackInfo& info);
  Napi::Value status(const Napi::CallbackInfo& info);
  Napi::Value information(const Napi::CallbackInfo& info);
  Napi::Value output(const Napi::CallbackInfo& info);
  void cancel(const Napi::CallbackInfo& info);
  void hold(const Napi::CallbackInfo& info);
  void release(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  std::shared_ptr<door::Channel> channel_;
  std::shared_ptr<LoopSignal> signal_;
  std::shared_ptr<Teardown> teardown_;
  std::unique_ptr<LoopWait> loopWait_;
  std::unique_ptr<BlockedWait> blockedWait_;
  bool closed_ = false;
  std::unique_ptr<LoopCallback> onComplete_;
  Napi::Reference<Napi::Int32Array> states_, cacheEpoch_;
  Napi::Reference<Napi::Float64Array> answer_;
  Napi::Reference<Napi::Uint8Array> answerBytes_;
  double* answerWords_ = nullptr;  // data of answer_
  uint8_t* answerData_ = nullptr;  // data of answerBytes_
};

class NativeChannelServer final : public Napi::ObjectWrap<NativeChannelServer>, public Closable {
 public:
  static Napi::Function define(Napi::Env env);
  static Napi::Value serveChannel(const Napi::CallbackInfo& info);
  static Napi::Value failChannel(const Napi::CallbackInfo& info);
  // Returns null if the value is not a NativeChannelServer.
  static NativeChannelServer* from(Napi::Value value);
  explicit NativeChannelServer(const Napi::CallbackInfo& info);
  ~NativeChannelServer() override;
  Rank rank() const override { return Rank::kServer; }
  void closeNow() override;
  const std::shared_ptr<door::Channel>& channel() const { return channel_; }

 private:
  Napi::Value getRequest(const Napi::CallbackInfo&) { return request_.Value(); }
  Napi::Value getRequestBytes(const Napi::CallbackInfo&) { return requestBytes_.Value(); }
  Napi::Value next(const Napi::CallbackInfo& info);
  void newCacheEpoch(const Napi::CallbackInfo&) { channel_->newCacheEpoch(); }
  void acceptNotifications(const Napi::CallbackInfo&) { signal_->acceptNotifications(); }
  Napi::Value longInput(const Napi::CallbackInfo& info);
  Napi::Value getAnswerBytes(const Napi::CallbackInfo&) { return answerBytes_.Value(); }
  Napi::Value complete(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  std::shared_ptr<door::Channel> channel_;
  std::shared_ptr<LoopSignal> signal_;
  std::shared_ptr<Teardown> teardown_;
  std::unique_ptr<LoopCallback> onRequest_;
  Napi::Reference<Napi::Uint32Array> request_;
  Napi::Reference<Napi::Uint8Array> requestBytes_, answerBytes_;
  uint32_t* requestWords_ = nullptr;  // data of request_
  uint8_t* requestData_ = nullptr;    // data of requestBytes_
  uint8_t* answerData_ = nullptr;     // data of answerBytes_
  std::vector<uint8_t> longInput_;    // input too long for requestBytes_
  bool busy_ = false;                 // has found something since the loop last called
  static constexpr uint32_t kMostBeforeEvents = 64;
  uint32_t inARow_ = 0;  // requests since the last event
  bool closed_ = false;
};

}  // namespace nd::js
