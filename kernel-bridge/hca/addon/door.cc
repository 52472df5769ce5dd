#include "door.h"

#include <algorithm>
#include <chrono>

#include "convert.h"
#include "user_memory.h"
#include "own_methods.h"

namespace nd::js {

namespace {

constexpr double kMaxSlots = 1u << 20;
// Inputs and outputs up to this length use memory that both sides of a native call keep.
constexpr size_t kShortBytes = 4096;
constexpr double kNextNone = -1, kNextEvents = -2;
const napi_type_tag kServerTag = {0x6e642d73657276ull, 0x4e617469766543ull};

// Reads the milliseconds to wait. A negative value, or one longer than a lifetime, means without limit.
int64_t boundOf(double timeout) { return timeout < 0 || timeout > 1e12 ? -1 : static_cast<int64_t>(timeout); }

void throwType(Napi::Env env, const char* text) { napi_throw_type_error(env, nullptr, text); }

}  // namespace

// ── User side ───────────────────────────────────────────────────────────────────────────────────────────────

Napi::Function NativeChannel::define(Napi::Env env) {
  return DefineClass(
      env, "NativeChannel",
      {InstanceAccessor<&NativeChannel::getId>("id"), InstanceAccessor<&NativeChannel::getStates>("states"),
       InstanceAccessor<&NativeChannel::getCacheEpoch>("cacheEpoch"),
       InstanceAccessor<&NativeChannel::getProblem>("problem"), InstanceAccessor<&NativeChannel::getAnswer>("answer"),
       InstanceAccessor<&NativeChannel::getAnswerBytes>("answerBytes"), InstanceMethod<&NativeChannel::wait>("wait"),
       InstanceMethod<&NativeChannel::waitAndFinish>("waitAndFinish"), InstanceMethod<&NativeChannel::status>("status"),
       InstanceMethod<&NativeChannel::information>("information"), InstanceMethod<&NativeChannel::output>("output"),
       InstanceMethod<&NativeChannel::cancel>("cancel"), InstanceMethod<&NativeChannel::hold>("hold"),
       InstanceMethod<&NativeChannel::release>("release"),
       InstanceMethod<&NativeChannel::nextCompletion>("nextCompletion"),
       InstanceMethod<&NativeChannel::close>("close")});
}

Napi::Value NativeChannel::createChannel(const Napi::CallbackInfo& info) {
  return EnvData::of(info.Env()).channelClass.New({info[0], info[1], info[2]});
}

NativeChannel::NativeChannel(const Napi::CallbackInfo& info) : Napi::ObjectWrap<NativeChannel>(info) {
  Napi::Env env = info.Env();
  uint32_t slots, eventCode = 0;
  if (!toUint(env, info[0], &slots, kMaxSlots) || slots == 0 || !info[1].IsFunction() ||
      (!info[2].IsUndefined() && !toU32(env, info[2], &eventCode))) {
    throwType(
        env,
        "createChannel(slots, onComplete, eventCode): `slots` must be an integer from 1 to 1048576, `onComplete` a "
        "function, `eventCode` an IOCTL code or undefined");
    return;
  }
  const Napi::Object self = Value();
  Napi::Float64Array answer = Napi::Float64Array::New(env, 4);
  Napi::Uint8Array bytes = Napi::Uint8Array::New(env, kShortBytes);
  if (anyEmpty({self, answer, bytes})) return;
  EnvData& data = EnvData::of(env);
  onComplete_ = std::make_unique<LoopCallback>(env, info[1].As<Napi::Function>(), "networkdirect:completion");
  signal_ = LoopSignal::open(
      data, [this] { deliver(); }, false);
  if (signal_ == nullptr) {
    napi_throw_error(env, nullptr, "cannot open a channel: the event loop of this thread is ending");
    return;
  }
  channel_ = door::Channel::create(slots, signal_, eventCode);
  channel_->context = data.context;
  teardown_ = data.teardown();
  teardown_->items.insert(this);

  // The state words belong to the channel, which the ArrayBuffer keeps alive.
  static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t), "state words are plain 32-bit words");
  auto* keep = new std::shared_ptr<door::Channel>(channel_);
  Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(
      env, channel_->states(), (slots + 1) * sizeof(int32_t),
      [](Napi::Env, void*, std::shared_ptr<door::Channel>* hint) { delete hint; }, keep);
  if (buffer.IsEmpty()) {
    delete keep;
    return;
  }
  states_ = Napi::Persistent(Napi::Int32Array::New(env, slots, buffer, 0));
  cacheEpoch_ = Napi::Persistent(Napi::Int32Array::New(env, 1, buffer, slots * sizeof(int32_t)));
  answer_ = Napi::Persistent(answer);
  answerBytes_ = Napi::Persistent(bytes);
  answerWords_ = answer.Data();
  answerData_ = bytes.Data();
  addOwnMethod<NativeChannel, &NativeChannel::submit>(self, self, this, "submit");
  addOwnMethod<NativeChannel, &NativeChannel::call>(self, self, this, "call");
  addOwnMethod<NativeChannel, &NativeChannel::finish>(self, self, this, "finish");
}

NativeChannel::~NativeChannel() {
  if (channel_ == nullptr) return;
  closeNow();
  teardown_->items.erase(this);
}

LoopWait* NativeChannel::loopWait() {
  EnvData& data = EnvData::of(Env());
  if (loopWait_ == nullptr && data.engine() != nullptr && !closed_) {
    loopWait_ = LoopWait::open(data, data.context->progress(), channel_, signal_, [this] { deliver(); });
    channel_->watches = loopWait_ != nullptr;
  }
  return loopWait_.get();
}

BlockedWait* NativeChannel::blockedWait() {
  EnvData& data = EnvData::of(Env());
  if (blockedWait_ == nullptr && data.engine() != nullptr && !closed_)
    blockedWait_ = std::make_unique<BlockedWait>(data.context->progress());
  return blockedWait_ != nullptr && blockedWait_->valid() ? blockedWait_.get() : nullptr;
}

void NativeChannel::closeNow() {
  closed_ = true;
  channel_->watches = false;
  loopWait_.reset();
  blockedWait_.reset();
  channel_->closeUser();
  signal_->close();
}

bool NativeChannel::slotOf(const Napi::CallbackInfo& info, uint32_t* slot) {
  if (toUint(info.Env(), info[0], slot, channel_->slotCount() - 1.0)) return true;
  napi_throw_range_error(info.Env(), nullptr, "`slot` must be a slot of this channel");
  return false;
}

void NativeChannel::updateKeepAlive() { signal_->setKeepAlive(channel_->holdsLoop()); }

void NativeChannel::deliver() {
  napi_env env = Env();
  LoopCallback::Scope scope(*onComplete_);
  channel_->drainCompletions([&](uint32_t slot) {
    napi_value arguments[2];
    if (napi_create_uint32(env, slot, &arguments[0]) == napi_ok &&
        napi_create_int32(env, takeAnswer(slot), &arguments[1]) == napi_ok)
      scope.call(2, arguments);
  });
  updateKeepAlive();
}

Napi::Value NativeChannel::getId(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), channel_->id());
}

Napi::Value NativeChannel::getStates(const Napi::CallbackInfo&) { return states_.Value(); }

Napi::Value NativeChannel::getProblem(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), channel_->reason());
}

Napi::Value NativeChannel::submit(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t major, fileId, code, outputLength;
  Bytes input;
  bool overlapped;
  if (!toU32(env, info[0], &major) || !toU32(env, info[1], &fileId) || !toU32(env, info[2], &code) ||
      !toBytes(env, info[3], &input, true) || !toU32(env, info[4], &outputLength) ||
      !toBool(env, info[5], &overlapped)) {
    throwType(
        env,
        "submit(major, fileId, code, input, outputLength, overlapped): arguments must be unsigned 32-bit numbers, "
        "a Uint8Array or null, and a boolean");
    return env.Undefined();
  }
  const int32_t slot = channel_->submit(major, fileId, code, input.data, input.length, outputLength, overlapped);
  if (overlapped) updateKeepAlive();
  if (overlapped && channel_->undeliveredEvents() != 0) {
    if (LoopWait* wait = loopWait()) wait->start();
  }
  return Napi::Number::New(env, slot);
}

Napi::Value NativeChannel::call(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t major, fileId, code, outputLength;
  Bytes input;
  double timeout;
  if (!toU32(env, info[0], &major) || !toU32(env, info[1], &fileId) || !toU32(env, info[2], &code) ||
      !toBytes(env, info[3], &input, true) || !toU32(env, info[4], &outputLength) ||
      !toDouble(env, info[5], &timeout)) {
    throwType(env,
              "call(major, fileId, code, input, outputLength, timeoutMs): arguments must be unsigned 32-bit numbers, "
              "a Uint8Array or null, and a number");
    return env.Undefined();
  }
  const int32_t submitted = channel_->submit(major, fileId, code, input.data, input.length, outputLength, false);
  if (submitted < 0) return Napi::Number::New(env, door::kCallNoSlot);
  const uint32_t slot = static_cast<uint32_t>(submitted);
  const Waited waited = waitFor(slot, boundOf(timeout));
  if (waited == Waited::kDone) return Napi::Number::New(env, takeAnswer(slot));
  channel_->cancel(slot);
  channel_->release(slot);
  return Napi::Number::New(env, waited == Waited::kTimedOut ? door::kCallTimedOut : door::kCallStopped);
}

Napi::Value NativeChannel::nextCompletion(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), channel_->nextCompletion());
}

uint32_t NativeChannel::takeAnswer(uint32_t slot) {
  size_t length;
  const uint8_t* output = channel_->output(slot, &length);
  answerWords_[0] = channel_->status(slot);
  answerWords_[1] = static_cast<double>(channel_->information(slot));
  answerWords_[2] = static_cast<double>(length);
  answerWords_[3] = slot;
  if (length > kShortBytes) return door::kCallLong;
  if (length > 0) std::memcpy(answerData_, output, length);
  channel_->release(slot);
  return door::kCallDone;
}

Napi::Value NativeChannel::finish(const Napi::CallbackInfo& info) {
  uint32_t slot;
  if (!slotOf(info, &slot)) return info.Env().Undefined();
  const int outcome = takeAnswer(slot);
  updateKeepAlive();
  return Napi::Number::New(info.Env(), outcome);
}

Napi::Value NativeChannel::wait(const Napi::CallbackInfo& info) {
  uint32_t slot;
  double timeout;
  if (!slotOf(info, &slot)) return info.Env().Undefined();
  if (!toDouble(info.Env(), info[1], &timeout)) {
    throwType(info.Env(), "wait(slot, timeoutMs): `timeoutMs` must be a number");
    return info.Env().Undefined();
  }
  return Napi::Boolean::New(info.Env(), waitFor(slot, boundOf(timeout)) == Waited::kDone);
}

Napi::Value NativeChannel::waitAndFinish(const Napi::CallbackInfo& info) {
  uint32_t slot;
  if (!slotOf(info, &slot)) return info.Env().Undefined();
  if (waitFor(slot, -1) == Waited::kStopped) return Napi::Number::New(info.Env(), door::kCallStopped);
  const int outcome = takeAnswer(slot);
  updateKeepAlive();
  return Napi::Number::New(info.Env(), outcome);
}

NativeChannel::Waited NativeChannel::waitFor(uint32_t slot, int64_t timeoutMs) {
  using std::chrono::steady_clock, std::chrono::milliseconds;
  if (channel_->settled(slot)) return Waited::kDone;
  BlockedWait* own = channel_->isEvent(slot) ? blockedWait() : nullptr;
  const auto end = steady_clock::now() + milliseconds(timeoutMs);
  for (;;) {
    int64_t left = progress::kStopCheckMs;
    if (timeoutMs >= 0)
      left = std::clamp<int64_t>(std::chrono::ceil<milliseconds>(end - steady_clock::now()).count(), 0,
                                 progress::kStopCheckMs);
    if (own != nullptr ? own->wait(*channel_, slot, left) : channel_->wait(slot, left)) return Waited::kDone;
    if (left == 0) return Waited::kTimedOut;
    if (EnvData::of(Env()).stopRequested()) return Waited::kStopped;
  }
}

Napi::Value NativeChannel::status(const Napi::CallbackInfo& info) {
  uint32_t slot;
  if (!slotOf(info, &slot)) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), channel_->status(slot));
}

Napi::Value NativeChannel::information(const Napi::CallbackInfo& info) {
  uint32_t slot;
  if (!slotOf(info, &slot)) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), static_cast<double>(channel_->information(slot)));
}

Napi::Value NativeChannel::output(const Napi::CallbackInfo& info) {
  uint32_t slot;
  if (!slotOf(info, &slot)) return info.Env().Undefined();
  size_t length;
  const uint8_t* bytes = channel_->output(slot, &length);
  return copyToJs(info.Env(), bytes, length);
}

void NativeChannel::cancel(const Napi::CallbackInfo& info) {
  uint32_t slot;
  if (slotOf(info, &slot)) channel_->cancel(slot);
}

void NativeChannel::hold(const Napi::CallbackInfo& info) {
  uint32_t slot;
  bool holds;
  if (!slotOf(info, &slot)) return;
  if (!toBool(info.Env(), info[1], &holds))
    return throwType(info.Env(), "hold(slot, holds): `holds` must be a boolean");
  channel_->hold(slot, holds);
  updateKeepAlive();
}

void NativeChannel::release(const Napi::CallbackInfo& info) {
  uint32_t slot;
  if (!slotOf(info, &slot)) return;
  channel_->release(slot);
  updateKeepAlive();
}

void NativeChannel::close(const Napi::CallbackInfo&) { channel_->end("the channel was closed by its user"); }

// ── Kernel side ─────────────────────────────────────────────────────────────────────────────────────────────

Napi::Function NativeChannelServer::define(Napi::Env env) {
  return DefineClass(env, "NativeChannelServer",
                     {InstanceAccessor<&NativeChannelServer::getRequest>("request"),
                      InstanceAccessor<&NativeChannelServer::getRequestBytes>("requestBytes"),
                      InstanceAccessor<&NativeChannelServer::getAnswerBytes>("answerBytes"),
                      InstanceMethod<&NativeChannelServer::acceptNotifications>("acceptNotifications"),
                      InstanceMethod<&NativeChannelServer::newCacheEpoch>("newCacheEpoch"),
                      InstanceMethod<&NativeChannelServer::longInput>("longInput"),
                      InstanceMethod<&NativeChannelServer::close>("close")});
}

Napi::Value NativeChannelServer::serveChannel(const Napi::CallbackInfo& info) {
  return EnvData::of(info.Env()).serverClass.New({info[0], info[1]});
}

Napi::Value NativeChannelServer::failChannel(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t id;
  std::string reason;
  if (!toU32(env, info[0], &id) || !toString(env, info[1], &reason)) {
    throwType(env, "failChannel(id, reason): `id` must be a channel id, `reason` a string");
    return env.Undefined();
  }
  if (std::shared_ptr<door::Channel> channel = door::Channel::find(id)) channel->end(reason);
  return env.Undefined();
}

NativeChannelServer* NativeChannelServer::from(Napi::Value value) {
  bool matches = false;
  if (!value.IsObject() || napi_check_object_type_tag(value.Env(), value, &kServerTag, &matches) != napi_ok ||
      !matches) {
    return nullptr;
  }
  return Unwrap(value.As<Napi::Object>());
}

NativeChannelServer::NativeChannelServer(const Napi::CallbackInfo& info) : Napi::ObjectWrap<NativeChannelServer>(info) {
  Napi::Env env = info.Env();
  uint32_t id;
  if (!toU32(env, info[0], &id) || !info[1].IsFunction()) {
    throwType(env, "serveChannel(id, onRequest): `id` must be a channel id, `onRequest` a function");
    return;
  }
  const Napi::Object self = Value();
  Napi::Uint32Array request = Napi::Uint32Array::New(env, 6);
  Napi::Uint8Array bytes = Napi::Uint8Array::New(env, kShortBytes);
  Napi::Uint8Array answer = Napi::Uint8Array::New(env, kShortBytes);
  if (anyEmpty({self, request, bytes, answer})) return;
  std::shared_ptr<door::Channel> channel = door::Channel::find(id);
  if (channel == nullptr) {
    napi_throw_error(env, nullptr, "serveChannel: no channel has this id (its isolate may have ended)");
    return;
  }
  EnvData& data = EnvData::of(env);
  onRequest_ = std::make_unique<LoopCallback>(env, info[1].As<Napi::Function>(), "networkdirect:request");
  signal_ = LoopSignal::open(
      data, [this] { LoopCallback::Scope(*onRequest_).call(0, nullptr); }, true);
  if (signal_ == nullptr || !channel->serve(signal_)) {
    if (signal_ != nullptr) signal_->close();
    napi_throw_error(env, nullptr, "serveChannel: the channel is already being served, or has ended");
    return;
  }
  channel_ = std::move(channel);
  request_ = Napi::Persistent(request);
  requestBytes_ = Napi::Persistent(bytes);
  answerBytes_ = Napi::Persistent(answer);
  requestWords_ = request.Data();
  requestData_ = bytes.Data();
  answerData_ = answer.Data();
  teardown_ = data.teardown();
  teardown_->items.insert(this);
  addOwnMethod<NativeChannelServer, &NativeChannelServer::next>(self, self, this, "next");
  addOwnMethod<NativeChannelServer, &NativeChannelServer::complete>(self, self, this, "completeSlot");
  napi_type_tag_object(env, self, &kServerTag);
  Ref();  // requests arrive even if the kernel's JavaScript drops this object, until closeNow()
}

NativeChannelServer::~NativeChannelServer() {
  if (channel_ == nullptr) return;
  closeNow();
  teardown_->items.erase(this);
}

void NativeChannelServer::closeNow() {
  if (closed_) return;
  closed_ = true;
  channel_->end("the soft kernel has ended");
  signal_->close();
  Unref();
}

Napi::Value NativeChannelServer::next(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  door::Request request;
  bool taken = false, notified = false;
  // Requests take precedence over events, because the request for an event came before it. The limit ensures that
  // events are served nevertheless.
  const auto ready = [&] {
    if (inARow_ < kMostBeforeEvents) taken = channel_->take(&request);
    if (!taken) notified = signal_->notified();
    if (!taken && !notified) taken = channel_->take(&request);
    inARow_ = taken ? inARow_ + 1 : 0;
    return taken || notified;
  };
  bool found = ready();
  if (!found && busy_ && !closed_) found = signal_->park(progress::kParkMicroseconds, ready);
  if (!found && std::exchange(busy_, false)) {
    signal_->end();
    found = ready();  // earlier wake-ups did not reach the loop
  }
  if (!found) return Napi::Number::New(env, kNextNone);
  if (!std::exchange(busy_, true)) signal_->begin();
  if (!taken) return Napi::Number::New(env, kNextEvents);
  const uint32_t words[] = {request.slot,   request.serial, request.major,
                            request.fileId, request.code,   request.outputLength};
  std::memcpy(requestWords_, words, sizeof words);
  const size_t length = request.input.size();
  if (length > kShortBytes) {
    longInput_ = std::move(request.input);
  } else if (length > 0) {
    std::memcpy(requestData_, request.input.data(), length);
  }
  return Napi::Number::New(env, static_cast<double>(length));
}

Napi::Value NativeChannelServer::longInput(const Napi::CallbackInfo& info) {
  const std::vector<uint8_t> input = std::move(longInput_);
  longInput_.clear();
  return copyToJs(info.Env(), input.data(), input.size());
}

Napi::Value NativeChannelServer::complete(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  double slot;
  uint32_t serial, status;
  uint64_t information;
  // A number is the length of the reply, which is already in place.
  Bytes output{answerData_, 0};
  const bool hasOutput = toUint(env, info[4], &output.length, kShortBytes) || toBytes(env, info[4], &output, true);
  if (!toDouble(env, info[0], &slot) || !toU32(env, info[1], &serial) || !toU32(env, info[2], &status) ||
      !toUint(env, info[3], &information) || !hasOutput || status == door::kStatusPending) {
    throwType(
        env,
        "completeSlot(slot, serial, status, information, output): arguments must be unsigned numbers, a final status, "
        "and a Uint8Array, null, or a number of reply bytes");
    return env.Undefined();
  }
  const bool won =
      slot >= 0 && slot < channel_->slotCount() &&
      channel_->complete(static_cast<uint32_t>(slot), serial, status, information, output.data, output.length);
  return Napi::Boolean::New(env, won);
}

void NativeChannelServer::close(const Napi::CallbackInfo&) { closeNow(); }

}  // namespace nd::js
