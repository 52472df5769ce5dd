#include "hca.h"

#include <iterator>

#include "base/mad.h"
#include "hca_commands.h"
#include "memory.h"
#include "own_methods.h"

namespace nd::js {

namespace {

// Options of engine and host. False: `problem` names the property that is wrong.
bool readOptions(Napi::Env env, napi_value value, EngineOptions* engine, HostOptions* host, std::string* problem) {
  Reader reader(env, value);
  nd::readOptions(reader, static_cast<TransportOptions*>(engine));
  nd::readOptions(reader, static_cast<LinkOptions*>(host));
  Reader faults(env, reader.get("faults"));
  nd::readOptions(faults, static_cast<FaultRates*>(&host->faults));
  Reader dropMads(env, faults.get("dropMads"));
  for (uint32_t i = 0; i < std::size(host->faults.dropMadCount); ++i) {
    const std::string attribute = std::to_string(mad::kFirstAttribute + i);
    if (dropMads.has(attribute.c_str())) dropMads.uint(attribute.c_str(), &host->faults.dropMadCount[i]);
  }
  faults.note(dropMads.ok(), "dropMads");
  if (reader.ok() && faults.ok()) return true;
  *problem = !reader.ok() ? reader.wrong() : "faults." + faults.wrong();
  return false;
}

void throwOptions(Napi::Env env, const std::string& property) {
  const std::string text = "HCA options: property '" + property + "' is missing, of the wrong type or out of range";
  napi_throw_type_error(env, nullptr, text.c_str());
}

}  // namespace

// ── Life ────────────────────────────────────────────────────────────────────────────────────────────────────

Napi::Function NativeHca::define(Napi::Env env) {
  using H = NativeHca;
  return DefineClass(
      env, "NativeHca",
      {InstanceAccessor<&H::getKernelId>("kernelId"), InstanceAccessor<&H::getSlot>("slot"),
       InstanceAccessor<&H::getPeerExtensions>("peerExtensions"),
       InstanceAccessor<&H::getWireReady>("wireReady"), InstanceAccessor<&H::getWireProblem>("wireProblem"),
       InstanceAccessor<&H::getLimits>("limits"), InstanceAccessor<&H::getCommIdBase>("commIdBase"),
       InstanceAccessor<&H::getWords>("words"), InstanceAccessor<&H::getBytes>("bytes"),
       InstanceMethod<&H::configure>("configure"),
       InstanceMethod<&H::allocatePd>("allocatePd"), InstanceMethod<&H::deallocatePd>("deallocatePd"),
       InstanceMethod<&H::registerMr>("registerMr"), InstanceMethod<&H::deregisterMr>("deregisterMr"),
       InstanceMethod<&H::allocateMr>("allocateMr"),
       InstanceMethod<&H::allocateMw>("allocateMw"), InstanceMethod<&H::deallocateMw>("deallocateMw"),
       InstanceMethod<&H::createCq>("createCq"), InstanceMethod<&H::resizeCq>("resizeCq"),
       InstanceMethod<&H::destroyCq>("destroyCq"), InstanceMethod<&H::createSrqWords>("createSrqWords"),
       InstanceMethod<&H::modifySrqWords>("modifySrqWords"), InstanceMethod<&H::querySrq>("querySrq"),
       InstanceMethod<&H::destroySrq>("destroySrq"),
       InstanceMethod<&H::queryQp>("queryQp"),
       InstanceMethod<&H::destroyQp>("destroyQp"),
       InstanceMethod<&H::listenCq>("listenCq"), InstanceMethod<&H::armCq>("armCq"),
       InstanceMethod<&H::createAhWords>("createAhWords"), InstanceMethod<&H::destroyAh>("destroyAh"),
       InstanceMethod<&H::attachMulticast>("attachMulticast"), InstanceMethod<&H::detachMulticast>("detachMulticast"),
       InstanceMethod<&H::createPkeyTable>("createPkeyTable"), InstanceMethod<&H::setPkeyTable>("setPkeyTable"),
       InstanceMethod<&H::queryPkeyTable>("queryPkeyTable"), InstanceMethod<&H::destroyPkeyTable>("destroyPkeyTable"),
       InstanceMethod<&H::addCqWaiter>("addCqWaiter"), InstanceMethod<&H::removeCqWaiter>("removeCqWaiter"),
       InstanceMethod<&H::endCqEvents>("endCqEvents"),
       InstanceMethod<&H::openPort>("openPort"),
       InstanceMethod<&H::releasePort>("releasePort"), InstanceMethod<&H::counters>("counters"),
       InstanceMethod<&H::objectCounts>("objectCounts"), InstanceMethod<&H::statistics>("statistics"),
       InstanceMethod<&H::answerObserver>("answerObserver"), InstanceMethod<&H::close>("close")});
}

Napi::Value NativeHca::openHca(const Napi::CallbackInfo& info) {
  return EnvData::of(info.Env()).hcaClass.New({info[0], info[1], info[2]});
}

NativeHca::NativeHca(const Napi::CallbackInfo& info) : Napi::ObjectWrap<NativeHca>(info) {
  Napi::Env env = info.Env();
  EngineOptions engineOptions;
  HostOptions hostOptions;
  std::string problem;
  if (!info[1].IsFunction()) {
    napi_throw_type_error(env, nullptr, "openHca(options, onEvent, server): onEvent is a function");
    return;
  }
  if (!readOptions(env, info[0], &engineOptions, &hostOptions, &problem)) {
    throwOptions(env, problem);
    return;
  }

  const Napi::Object self = Value();
  const Napi::Object methods = Napi::Object::New(env);
  Napi::Float64Array words = Napi::Float64Array::New(env, Words::kCount);
  Napi::Uint8Array bytes = Napi::Uint8Array::New(env, Words::kBytes);
  if (anyEmpty({self, methods, words, bytes})) return;
  EnvData& data = EnvData::of(env);
  const NativeChannelServer* server = NativeChannelServer::from(info[2]);
  context_ = server != nullptr ? server->channel()->context.lock() : data.context;
  data.context = context_;  // drivers post and poll on the kernel's thread
  if (context_ == nullptr) {
    napi_throw_error(env, nullptr, "openHca: the thread that opened this channel is ending");
    return;
  }
  const Status started = context_->start(engineOptions, hostOptions, &problem);
  if (started != Status::kSuccess) {
    napi_throw_error(env, nullptr, ("the HCA did not start: " + problem).c_str());
    return;
  }
  onEvent_ = std::make_unique<LoopCallback>(env, info[1].As<Napi::Function>(), "networkdirect:hca");
  signal_ = LoopSignal::open(data, [this] { LoopCallback::Scope(*onEvent_).call(0, nullptr); }, false);
  if (signal_ == nullptr) {
    napi_throw_error(env, nullptr, "the event loop of this thread is ending: the HCA cannot be opened");
    return;
  }
  signal_->notifyFirst();
  port_ = std::make_shared<HcaPort>(signal_);
  const Status attached = context_->engine()->attachKernel(port_.get(), &kernel_);
  if (attached != Status::kSuccess) {
    signal_->close();
    napi_throw_error(env, nullptr, "the HCA serves as many soft kernels as it can (63)");
    return;
  }
  engine_ = context_->engine();
  host_ = &context_->host();
  wordsArray_ = Napi::Persistent(words);
  bytesArray_ = Napi::Persistent(bytes);
  words_ = {words.Data(), bytes.Data()};
  open_ = true;
  teardown_ = data.teardown();
  teardown_->items.insert(this);
  self.Set("methods", methods);
  addOwnMethod<NativeHca, &NativeHca::takeEventWords>(methods, self, this, "takeEventWords");
  addOwnMethod<NativeHca, &NativeHca::createQpWords>(methods, self, this, "createQpWords");
  addOwnMethod<NativeHca, &NativeHca::modifyQpWords>(methods, self, this, "modifyQpWords");
  addOwnMethod<NativeHca, &NativeHca::connectQpWords>(methods, self, this, "connectQpWords");
  addOwnMethod<NativeHca, &NativeHca::queryQpState>(methods, self, this, "queryQpState");
  addOwnMethod<NativeHca, &NativeHca::setWillWords>(methods, self, this, "setWillWords");
  addOwnMethod<NativeHca, &NativeHca::sendMadWords>(methods, self, this, "sendMadWords");
  addOwnMethod<NativeHca, &NativeHca::claimPortWords>(methods, self, this, "claimPortWords");
  Ref();  // events arrive even if JavaScript drops this object; until closeNow()
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
  cqEvents_.clear();
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
  std::lock_guard<EngineLock> lock(engine_->lock());
  host_->configure(hostOptions);
}

Napi::Value NativeHca::getKernelId(const Info& info) { return Napi::Number::New(info.Env(), kernel_); }
Napi::Value NativeHca::getSlot(const Info& info) { return Napi::Number::New(info.Env(), host_->slot()); }
Napi::Value NativeHca::getPeerExtensions(const Info& info) { return Napi::Number::New(info.Env(), Engine::extensions()); }
Napi::Value NativeHca::getWireReady(const Info& info) { return Napi::Boolean::New(info.Env(), host_->wireReady()); }
Napi::Value NativeHca::getWireProblem(const Info& info) { return Napi::String::New(info.Env(), host_->wireProblem()); }
Napi::Value NativeHca::getCommIdBase(const Info& info) {
  return Napi::Number::New(info.Env(), host_->commIdBase(kernel_));
}

Napi::Value NativeHca::getLimits(const Info& info) { return numbersToJs<HcaLimits>(info.Env(), engine_->options()); }

// ── Commands ────────────────────────────────────────────────────────────────────────────────────────────────

// A command that takes a handle and returns a status.
Napi::Value NativeHca::handleCommand(const Info& info, Status (Engine::*command)(Handle)) {
  Handle handle;
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  if (!toU32(info.Env(), info[0], &handle)) return number(info.Env(), Status::kInvalidParameter);
  return number(info.Env(), (engine_->*command)(handle));
}

Napi::Value NativeHca::sendMadWords(const Info& info) {
  Napi::Env env = info.Env();
  Path path;
  uint16_t pkey;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!words_.path(&path) || !toUint(env, info[0], &pkey, 0xFFFF)) return number(env, Status::kInvalidParameter);
  port_->onSent(words_.mad(), path.destination);
  return number(env, host_->sendMad(path, words_.mad(), pkey));
}

Napi::Value NativeHca::claimPortWords(const Info& info) {
  Napi::Env env = info.Env();
  uint32_t service, claim = 0;
  uint16_t port = 0;
  bool one = false;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &service) && toUint(env, info[1], &port, 65535) && toBool(env, info[2], &one)) {
    const Gid address = words_.gid(0);
    status = host_->claimPort(kernel_, service, one ? &address : nullptr, &port, &claim);
  }
  words_.words[0] = claim;
  words_.words[1] = port;
  return number(env, status);
}

Napi::Value NativeHca::openPort(const Info& info) {
  uint32_t claim;
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  return number(info.Env(), toU32(info.Env(), info[0], &claim) ? host_->openPort(claim) : Status::kInvalidParameter);
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
  const HcaPort::Drops drops = port_->drops();
  out.Set("mad_queue_full", static_cast<double>(drops.full));
  out.Set("mad_queue_source_full", static_cast<double>(drops.sourceFull));
  return out;
}

Napi::Value NativeHca::objectCounts(const Info& info) {
  static constexpr const char* kKinds[] = {"pd", "mr", "mw", "cq", "qp", "ring", "range"};
  const std::array<uint32_t, 7> counts = engine_->objectCounts();
  Napi::Object out = Napi::Object::New(info.Env());
  for (size_t i = 0; i < counts.size(); ++i) out.Set(kKinds[i], counts[i]);
  out.Set("srq", engine_->srqCount());
  out.Set("ah", engine_->ahCount());
  out.Set("pkeyTable", engine_->pkeyTableCount());
  return out;
}

}  // namespace nd::js
