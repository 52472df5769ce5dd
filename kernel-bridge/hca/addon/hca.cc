#include "hca.h"

#include <unistd.h>

#include "convert.h"
#include "memory.h"

namespace nd::js {

// ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────

void HcaPort::push(HcaEvent&& event) {
  events_.push_back(std::move(event));
  if (armed_) {
    armed_ = false;
    signal_->wake();
  }
}

void HcaPort::onMad(const PacketMeta& meta, const uint8_t mad[256]) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kMad;
  event.meta = meta;
  std::memcpy(event.mad.data(), mad, event.mad.size());
  std::lock_guard<std::mutex> lock(mutex_);
  if (mads_ >= kMaxMads) {
    ++droppedMads_;
    return;
  }
  ++mads_;
  push(std::move(event));
}

void HcaPort::onQpEvent(Handle qp, uint32_t token, QpEvent type, uint32_t reason) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kQp;
  event.handle = qp;
  event.token = token;
  event.event = static_cast<uint32_t>(type);
  event.reason = reason;
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

void HcaPort::onCqError(Handle cq) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kCq;
  event.handle = cq;
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

void HcaPort::onNotified(const door::Channel* channel, uint32_t slot, uint32_t serial, bool won) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kNotified;
  event.channel = channel;
  event.slot = slot;
  event.serial = serial;
  event.won = won;
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

bool HcaPort::take(HcaEvent* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (events_.empty()) {
    armed_ = true;
    return false;
  }
  *out = std::move(events_.front());
  events_.pop_front();
  if (out->kind == HcaEvent::Kind::kMad) --mads_;
  return true;
}

uint64_t HcaPort::droppedMads() {
  std::lock_guard<std::mutex> lock(mutex_);
  return droppedMads_;
}

namespace {

// Completes a pended request when the CQ's event comes, without a detour through the kernel's JavaScript.
class SlotSink final : public NotifySink {
 public:
  SlotSink(std::shared_ptr<door::Channel> channel, uint32_t slot, uint32_t serial, std::weak_ptr<HcaPort> port)
      : channel_(std::move(channel)), slot_(slot), serial_(serial), port_(std::move(port)) {}
  void notify(Status status) override {
    const bool won = channel_->complete(slot_, serial_, static_cast<uint32_t>(status), 0, nullptr, 0);
    if (std::shared_ptr<HcaPort> port = port_.lock()) port->onNotified(channel_.get(), slot_, serial_, won);
  }

 private:
  std::shared_ptr<door::Channel> channel_;
  uint32_t slot_, serial_;
  std::weak_ptr<HcaPort> port_;
};

// ── Options ─────────────────────────────────────────────────────────────────────────────────────────────────

void expandProcessId(std::string* path) {
  const size_t at = path->find("%p");
  if (at != std::string::npos) path->replace(at, 2, std::to_string(getpid()));
}

bool readDropMads(Napi::Env env, napi_value value, FaultOptions* out) {
  napi_valuetype type;
  napi_value names;
  uint32_t count = 0;
  if (value == nullptr || napi_typeof(env, value, &type) != napi_ok || type != napi_object ||
      napi_get_property_names(env, value, &names) != napi_ok || napi_get_array_length(env, names, &count) != napi_ok) {
    clearException(env);
    return false;
  }
  constexpr uint32_t kFirstAttribute = 0x10, kAttributes = sizeof(out->dropMadCount) / sizeof(out->dropMadCount[0]);
  for (uint32_t i = 0; i < count; ++i) {
    napi_value name, text, number;
    std::string key;
    if (napi_get_element(env, names, i, &name) != napi_ok || napi_coerce_to_string(env, name, &text) != napi_ok ||
        !toString(env, text, &key) || napi_get_property(env, value, name, &number) != napi_ok) {
      clearException(env);
      return false;
    }
    char* end = nullptr;
    const unsigned long attribute = std::strtoul(key.c_str(), &end, 0);
    if (key.empty() || *end != '\0' || attribute < kFirstAttribute || attribute >= kFirstAttribute + kAttributes ||
        !toU32(env, number, &out->dropMadCount[attribute - kFirstAttribute])) {
      return false;
    }
  }
  return true;
}

// False: `problem` names the property that is wrong.
bool readOptions(Napi::Env env, napi_value value, EngineOptions* engine, HostOptions* host, std::string* problem) {
  Reader reader(env, value);
  uint64_t keepAliveMs = 0;
  reader.uint("keepAliveMs", &keepAliveMs, 1e9)
      .uint("window", &engine->window, 1 << 16)
      .string("capturePath", &host->capturePath)
      .uint("receiveBufferBytes", &host->receiveBufferBytes, 1 << 30);
  reader.note(engine->window > 0, "window");
  engine->keepAliveNs = keepAliveMs * 1'000'000;
  expandProcessId(&host->capturePath);
  Reader faults(env, reader.get("faults"));
  faults.uint("seed", &host->faults.seed, kMaxSafe)
      .number("drop", &host->faults.drop, 0, 1)
      .number("duplicate", &host->faults.duplicate, 0, 1)
      .number("reorder", &host->faults.reorder, 0, 1)
      .number("corrupt", &host->faults.corrupt, 0, 1);
  if (faults.ok()) faults.note(readDropMads(env, faults.get("dropMads"), &host->faults), "dropMads");
  if (reader.ok() && faults.ok()) return true;
  *problem = !reader.ok() ? reader.wrong() : "faults." + faults.wrong();
  return false;
}

void throwOptions(Napi::Env env, const std::string& property) {
  const std::string text = "HCA options: property '" + property + "' is missing, of the wrong type or out of range";
  napi_throw_type_error(env, nullptr, text.c_str());
}

Napi::Value number(Napi::Env env, Status status) { return Napi::Number::New(env, static_cast<uint32_t>(status)); }

// {status, …}: the fields are 0 when the status is not SUCCESS.
Napi::Object result(Napi::Env env, Status status) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("status", static_cast<uint32_t>(status));
  return out;
}

// One table for modifyQp and queryQp: name, member, largest value, mask bit.
struct Attribute {
  const char* name;
  uint32_t QpAttributes::*member;
  double max;
  uint32_t mask;
};

constexpr Attribute kAttributes[] = {
    {"state", &QpAttributes::state, 6, qpmask::kState},
    {"currentState", &QpAttributes::currentState, 6, qpmask::kCurrentState},
    {"access", &QpAttributes::access, 0x1F, qpmask::kAccess},
    {"pkeyIndex", &QpAttributes::pkeyIndex, 0xFFFF, qpmask::kPkeyIndex},
    {"port", &QpAttributes::port, 0xFF, qpmask::kPort},
    {"qkey", &QpAttributes::qkey, 4294967295.0, qpmask::kQkey},
    {"pathMtu", &QpAttributes::pathMtu, 4096, qpmask::kPathMtu},
    {"destinationQpn", &QpAttributes::destinationQpn, 0xFFFFFF, qpmask::kDestinationQpn},
    {"receivePsn", &QpAttributes::receivePsn, 0xFFFFFF, qpmask::kReceivePsn},
    {"sendPsn", &QpAttributes::sendPsn, 0xFFFFFF, qpmask::kSendPsn},
    {"responderResources", &QpAttributes::responderResources, 0xFFFF, qpmask::kResponderResources},
    {"initiatorDepth", &QpAttributes::initiatorDepth, 0xFFFF, qpmask::kInitiatorDepth},
    {"minRnrTimer", &QpAttributes::minRnrTimer, 31, qpmask::kMinRnrTimer},
    {"ackTimeout", &QpAttributes::ackTimeout, 31, qpmask::kAckTimeout},
    {"retryCount", &QpAttributes::retryCount, 7, qpmask::kRetryCount},
    {"rnrRetry", &QpAttributes::rnrRetry, 7, qpmask::kRnrRetry},
};

}  // namespace

// ── Life ────────────────────────────────────────────────────────────────────────────────────────────────────

Napi::Function NativeHca::define(Napi::Env env) {
  using H = NativeHca;
  return DefineClass(
      env, "NativeHca",
      {InstanceAccessor<&H::getKernelId>("kernelId"), InstanceAccessor<&H::getSlot>("slot"),
       InstanceAccessor<&H::getWireReady>("wireReady"), InstanceAccessor<&H::getWireProblem>("wireProblem"),
       InstanceAccessor<&H::getLimits>("limits"), InstanceAccessor<&H::getCommIdBase>("commIdBase"),
       InstanceMethod<&H::configure>("configure"), InstanceMethod<&H::takeEvent>("takeEvent"),
       InstanceMethod<&H::allocatePd>("allocatePd"), InstanceMethod<&H::deallocatePd>("deallocatePd"),
       InstanceMethod<&H::registerMr>("registerMr"), InstanceMethod<&H::deregisterMr>("deregisterMr"),
       InstanceMethod<&H::allocateMw>("allocateMw"), InstanceMethod<&H::deallocateMw>("deallocateMw"),
       InstanceMethod<&H::createCq>("createCq"), InstanceMethod<&H::resizeCq>("resizeCq"),
       InstanceMethod<&H::destroyCq>("destroyCq"), InstanceMethod<&H::createQp>("createQp"),
       InstanceMethod<&H::modifyQp>("modifyQp"), InstanceMethod<&H::queryQp>("queryQp"),
       InstanceMethod<&H::destroyQp>("destroyQp"), InstanceMethod<&H::setWill>("setWill"),
       InstanceMethod<&H::addCqWaiter>("addCqWaiter"), InstanceMethod<&H::removeCqWaiter>("removeCqWaiter"),
       InstanceMethod<&H::sendMad>("sendMad"), InstanceMethod<&H::claimPort>("claimPort"),
       InstanceMethod<&H::releasePort>("releasePort"), InstanceMethod<&H::counters>("counters"),
       InstanceMethod<&H::objectCounts>("objectCounts"), InstanceMethod<&H::close>("close")});
}

Napi::Value NativeHca::openHca(const Napi::CallbackInfo& info) {
  return EnvData::of(info.Env()).hcaClass.New({info[0], info[1]});
}

NativeHca::NativeHca(const Napi::CallbackInfo& info) : Napi::ObjectWrap<NativeHca>(info) {
  Napi::Env env = info.Env();
  EngineOptions engineOptions;
  HostOptions hostOptions;
  std::string problem;
  if (!info[1].IsFunction()) {
    napi_throw_type_error(env, nullptr, "openHca(options, onEvent): onEvent is a function");
    return;
  }
  if (!readOptions(env, info[0], &engineOptions, &hostOptions, &problem)) {
    throwOptions(env, problem);
    return;
  }

  Process& process = Process::instance();
  const Status started = process.start(engineOptions, hostOptions, &problem);
  if (started != Status::kSuccess) {
    napi_throw_error(env, nullptr, ("the HCA did not start: " + problem).c_str());
    return;
  }
  EnvData& data = EnvData::of(env);
  onEvent_ = std::make_unique<LoopCallback>(env, info[1].As<Napi::Function>(), "networkdirect:hca");
  signal_ = LoopSignal::open(data, [this] { LoopCallback::Scope(*onEvent_).call(0, nullptr); }, false);
  if (signal_ == nullptr) {
    napi_throw_error(env, nullptr, "the event loop of this thread is ending: the HCA cannot be opened");
    return;
  }
  port_ = std::make_shared<HcaPort>(signal_);
  const Status attached = process.engine().attachKernel(port_.get(), &kernel_);
  if (attached != Status::kSuccess) {
    signal_->close();
    napi_throw_error(env, nullptr, "the HCA serves as many soft kernels as it can (63 per process)");
    return;
  }
  engine_ = &process.engine();
  host_ = &process.host();
  setSharedEngine(engine_);
  open_ = true;
  teardown_ = data.teardown();
  teardown_->items.insert(this);
  Ref();  // events arrive whether or not JavaScript holds this object; until closeNow()
}

NativeHca::~NativeHca() {
  if (teardown_ == nullptr) return;
  closeNow();
  teardown_->items.erase(this);
}

void NativeHca::closeNow() {
  if (!open_) return;
  open_ = false;
  host_->releaseKernel(kernel_);
  engine_->detachKernel(kernel_);  // after this the engine calls port_ no more
  waiters_.clear();
  signal_->close();
  Unref();
}

void NativeHca::close(const Info&) { closeNow(); }

void NativeHca::configure(const Info& info) {
  EngineOptions engineOptions;
  HostOptions hostOptions;
  std::string problem;
  if (!readOptions(info.Env(), info[0], &engineOptions, &hostOptions, &problem)) {
    return throwOptions(info.Env(), problem);
  }
  if (!open_) return;
  std::lock_guard<std::mutex> lock(engine_->mutex());
  host_->configure(hostOptions);
}

Napi::Value NativeHca::getKernelId(const Info& info) { return Napi::Number::New(info.Env(), kernel_); }
Napi::Value NativeHca::getSlot(const Info& info) { return Napi::Number::New(info.Env(), host_->slot()); }
Napi::Value NativeHca::getWireReady(const Info& info) { return Napi::Boolean::New(info.Env(), host_->wireReady()); }
Napi::Value NativeHca::getWireProblem(const Info& info) { return Napi::String::New(info.Env(), host_->wireProblem()); }
Napi::Value NativeHca::getCommIdBase(const Info& info) {
  return Napi::Number::New(info.Env(), host_->commIdBase(kernel_));
}

Napi::Value NativeHca::getLimits(const Info& info) {
  const EngineOptions& o = engine_->options();
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("maxQp", o.maxQp);
  out.Set("maxCq", o.maxCq);
  out.Set("maxPd", o.maxPd);
  out.Set("maxMr", o.maxMr);
  out.Set("maxMw", o.maxMw);
  out.Set("maxQpWr", o.maxQpWr);
  out.Set("maxSge", o.maxSge);
  out.Set("maxCqEntries", o.maxCqEntries);
  out.Set("maxInline", o.maxInline);
  out.Set("maxReadDepth", o.maxReadDepth);
  out.Set("maxMrSize", static_cast<double>(o.maxMrSize));
  return out;
}

Napi::Value NativeHca::takeEvent(const Info& info) {
  Napi::Env env = info.Env();
  HcaEvent event;
  while (open_ && port_->take(&event)) {
    Napi::Object out = Napi::Object::New(env);
    switch (event.kind) {
      case HcaEvent::Kind::kMad:
        out.Set("type", "mad");
        out.Set("source", copyToJs(env, event.meta.source.raw.data(), event.meta.source.raw.size()));
        out.Set("destination", copyToJs(env, event.meta.destination.raw.data(), event.meta.destination.raw.size()));
        out.Set("scopeId", event.meta.scopeId);
        out.Set("mad", copyToJs(env, event.mad.data(), event.mad.size()));
        return out;
      case HcaEvent::Kind::kQp:
        out.Set("type", "qp");
        out.Set("qp", event.handle);
        out.Set("token", event.token);
        out.Set("event", event.event);
        out.Set("reason", event.reason);
        return out;
      case HcaEvent::Kind::kCq:
        out.Set("type", "cq");
        out.Set("cq", event.handle);
        return out;
      case HcaEvent::Kind::kNotified:
        waiters_.erase(WaiterKey{event.channel, event.slot, event.serial});
        if (!event.won) continue;  // the kernel completed it itself and knows
        out.Set("type", "notified");
        out.Set("slot", event.slot);
        out.Set("serial", event.serial);
        return out;
    }
  }
  return env.Undefined();
}

// ── Commands ────────────────────────────────────────────────────────────────────────────────────────────────

// A command that takes a handle and answers a status.
Napi::Value NativeHca::handleCommand(const Info& info, Status (Engine::*command)(Handle)) {
  Handle handle;
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  if (!toU32(info.Env(), info[0], &handle)) return number(info.Env(), Status::kInvalidParameter);
  return number(info.Env(), (engine_->*command)(handle));
}

Napi::Value NativeHca::allocatePd(const Info& info) {
  Handle pd = 0;
  const Status status = open_ ? engine_->allocatePd(kernel_, &pd) : Status::kDeviceRemoved;
  Napi::Object out = result(info.Env(), status);
  out.Set("pd", pd);
  return out;
}

Napi::Value NativeHca::deallocatePd(const Info& info) { return handleCommand(info, &Engine::deallocatePd); }

Napi::Value NativeHca::registerMr(const Info& info) {
  Napi::Env env = info.Env();
  Handle pd;
  uint64_t address, length;
  uint32_t access, lkey = 0, rkey = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &pd) && toUint(env, info[1], &address) && toUint(env, info[2], &length) &&
             toU32(env, info[3], &access)) {
    status = engine_->registerMr(pd, address, length, access, &lkey, &rkey);
  }
  Napi::Object out = result(env, status);
  out.Set("lkey", lkey);
  out.Set("rkey", rkey);
  return out;
}

Napi::Value NativeHca::deregisterMr(const Info& info) {
  uint32_t pd, lkey;
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  if (!toU32(info.Env(), info[0], &pd) || !toU32(info.Env(), info[1], &lkey)) {
    return number(info.Env(), Status::kInvalidParameter);
  }
  return number(info.Env(), engine_->deregisterMr(pd, lkey));
}

Napi::Value NativeHca::allocateMw(const Info& info) {
  Handle pd, mw = 0;
  uint32_t rkey = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(info.Env(), info[0], &pd)) {
    status = engine_->allocateMw(pd, &mw, &rkey);
  }
  Napi::Object out = result(info.Env(), status);
  out.Set("mw", mw);
  out.Set("rkey", rkey);
  return out;
}

Napi::Value NativeHca::deallocateMw(const Info& info) { return handleCommand(info, &Engine::deallocateMw); }

Napi::Value NativeHca::createCq(const Info& info) {
  Napi::Env env = info.Env();
  uint64_t address, bytes;
  uint32_t entries;
  Handle cq = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toUint(env, info[0], &address) && toUint(env, info[1], &bytes) && toU32(env, info[2], &entries)) {
    status = engine_->createCq(kernel_, address, bytes, entries, &cq);
  }
  Napi::Object out = result(env, status);
  out.Set("cq", cq);
  return out;
}

Napi::Value NativeHca::resizeCq(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint64_t address, bytes;
  uint32_t entries;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toUint(env, info[1], &address) || !toUint(env, info[2], &bytes) ||
      !toU32(env, info[3], &entries)) {
    return number(env, Status::kInvalidParameter);
  }
  return number(env, engine_->resizeCq(cq, address, bytes, entries));
}

Napi::Value NativeHca::destroyCq(const Info& info) { return handleCommand(info, &Engine::destroyCq); }

Napi::Value NativeHca::createQp(const Info& info) {
  QpCreate request;
  request.kernel = kernel_;
  Reader reader(info.Env(), info[0]);
  reader.uint("pd", &request.pd)
      .uint("sendCq", &request.sendCq)
      .uint("receiveCq", &request.receiveCq)
      .uint("srq", &request.srq)
      .uint("type", &request.type)
      .boolean("signalAll", &request.signalAll)
      .uint("ringAddress", &request.ringAddress, kMaxSafe)
      .uint("ringBytes", &request.ringBytes, kMaxSafe)
      .uint("sendEntries", &request.sendEntries)
      .uint("sendStride", &request.sendStride)
      .uint("sendSge", &request.sendSge)
      .uint("maxInline", &request.maxInline)
      .uint("receiveEntries", &request.receiveEntries)
      .uint("receiveStride", &request.receiveStride)
      .uint("receiveSge", &request.receiveSge)
      .uint("token", &request.token);
  Handle qp = 0;
  uint32_t qpn = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (reader.ok()) {
    status = engine_->createQp(request, &qp, &qpn);
  }
  Napi::Object out = result(info.Env(), status);
  out.Set("qp", qp);
  out.Set("qpn", qpn);
  return out;
}

Napi::Value NativeHca::modifyQp(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  uint32_t mask;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !toU32(env, info[1], &mask)) return number(env, Status::kInvalidParameter);
  // Only what the mask names is read: the object is partial.
  QpAttributes attributes;
  Reader reader(env, info[2]);
  for (const Attribute& a : kAttributes) {
    if ((mask & a.mask) != 0) reader.uint(a.name, &(attributes.*a.member), a.max);
  }
  if ((mask & qpmask::kPath) != 0) reader.path("path", &attributes.path);
  if (!reader.ok()) return number(env, Status::kInvalidParameter);
  return number(env, engine_->modifyQp(qp, mask, attributes));
}

Napi::Value NativeHca::queryQp(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  QpAttributes attributes;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &qp)) {
    status = engine_->queryQp(qp, &attributes);
  }
  Napi::Object values = Napi::Object::New(env);
  for (const Attribute& a : kAttributes) values.Set(a.name, attributes.*a.member);
  values.Set("type", attributes.type);
  values.Set("qpn", attributes.qpn);
  values.Set("path", pathToJs(env, attributes.path));
  Napi::Object out = result(env, status);
  out.Set("attributes", values);
  return out;
}

Napi::Value NativeHca::destroyQp(const Info& info) { return handleCommand(info, &Engine::destroyQp); }

Napi::Value NativeHca::setWill(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  Path path;
  Bytes mad;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !Reader::readPath(env, info[1], &path) || !toBytes(env, info[2], &mad) ||
      mad.length != 256) {
    return number(env, Status::kInvalidParameter);
  }
  return number(env, engine_->setWill(qp, path, mad.data));
}

Napi::Value NativeHca::addCqWaiter(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint32_t type, slot, serial;
  NativeChannelServer* server = NativeChannelServer::from(info[2]);
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toU32(env, info[1], &type) || server == nullptr || !toU32(env, info[3], &slot) ||
      !toU32(env, info[4], &serial)) {
    return number(env, Status::kInvalidParameter);
  }
  const WaiterKey key{server->channel().get(), slot, serial};
  auto sink = std::make_shared<SlotSink>(server->channel(), slot, serial, port_);
  // Known before the engine is asked: an event kept for the next waiter fires inside the call.
  if (!waiters_.emplace(key, Waiter{cq, sink}).second) return number(env, Status::kInvalidParameter);
  const Status status = engine_->addCqWaiter(cq, type, sink);
  if (status != Status::kSuccess) waiters_.erase(key);
  return number(env, status);
}

Napi::Value NativeHca::removeCqWaiter(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint32_t slot, serial;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toU32(env, info[1], &slot) || !toU32(env, info[2], &serial)) {
    return number(env, Status::kInvalidParameter);
  }
  for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
    if (it->second.cq != cq || std::get<1>(it->first) != slot || std::get<2>(it->first) != serial) continue;
    const Status status = engine_->removeCqWaiter(cq, it->second.sink.get());
    if (status == Status::kSuccess) waiters_.erase(it);  // otherwise it has fired, and its event is on the way
    return number(env, status);
  }
  return number(env, Status::kInvalidHandle);
}

Napi::Value NativeHca::sendMad(const Info& info) {
  Napi::Env env = info.Env();
  Path path;
  Bytes mad;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!Reader::readPath(env, info[0], &path) || !toBytes(env, info[1], &mad) || mad.length != 256) {
    return number(env, Status::kInvalidParameter);
  }
  return number(env, host_->sendMad(path, mad.data));
}

Napi::Value NativeHca::claimPort(const Info& info) {
  Napi::Env env = info.Env();
  uint32_t service, claim = 0;
  uint16_t port = 0;
  Bytes address;
  Gid gid;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &service) && toBytes(env, info[1], &address, true) &&
             (address.data == nullptr || address.length == gid.raw.size()) && toUint(env, info[2], &port, 65535)) {
    if (address.data != nullptr) std::memcpy(gid.raw.data(), address.data, address.length);
    status = host_->claimPort(kernel_, service, address.data != nullptr ? &gid : nullptr, &port, &claim);
  }
  Napi::Object out = result(env, status);
  out.Set("claim", claim);
  out.Set("port", port);
  return out;
}

void NativeHca::releasePort(const Info& info) {
  uint32_t claim;
  if (open_ && toU32(info.Env(), info[0], &claim)) host_->releasePort(claim);
}

Napi::Value NativeHca::counters(const Info& info) {
  Napi::Object out = Napi::Object::New(info.Env());
  const auto add = [&out](const std::vector<const char*>& names, const std::vector<uint64_t>& values) {
    for (size_t i = 0; i < names.size() && i < values.size(); ++i) out.Set(names[i], static_cast<double>(values[i]));
  };
  add(Engine::counterNames(), engine_->counters());
  add(Host::counterNames(), host_->counters());
  out.Set("mad_queue_drops", static_cast<double>(port_->droppedMads()));
  return out;
}

Napi::Value NativeHca::objectCounts(const Info& info) {
  static constexpr const char* kKinds[] = {"pd", "mr", "mw", "cq", "qp", "ring", "range"};
  const std::array<uint32_t, 7> counts = engine_->objectCounts();
  Napi::Object out = Napi::Object::New(info.Env());
  for (size_t i = 0; i < counts.size(); ++i) out.Set(kKinds[i], counts[i]);
  return out;
}

}  // namespace nd::js
