#include "hca.h"

#include <iterator>

#include "base/mad.h"
#include "user_memory.h"

namespace nd::js {

namespace {

// Reads the options of engine and host. Returns false if one is invalid; `problem` names the property.
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
  const std::string text = "HCA options: property '" + property + "' is missing, has the wrong type or is out of range";
  napi_throw_type_error(env, nullptr, text.c_str());
}

bool toPkeys(napi_env env, napi_value value, std::vector<uint16_t>* out) {
  bool isTyped = false;
  napi_typedarray_type kind;
  size_t length = 0;
  void* data = nullptr;
  if (value == nullptr || napi_is_typedarray(env, value, &isTyped) != napi_ok || !isTyped ||
      napi_get_typedarray_info(env, value, &kind, &length, &data, nullptr, nullptr) != napi_ok ||
      kind != napi_uint16_array) {
    return false;
  }
  const auto* keys = static_cast<const uint16_t*>(data);
  if (keys != nullptr) out->assign(keys, keys + length);
  return true;
}

bool toGids(napi_env env, napi_value value, std::vector<Gid>* out) {
  bool isArray = false;
  uint32_t length = 0;
  if (value == nullptr || napi_is_array(env, value, &isArray) != napi_ok || !isArray ||
      napi_get_array_length(env, value, &length) != napi_ok) {
    return false;
  }
  for (uint32_t i = 0; i < length; ++i) {
    napi_value entry;
    Gid gid;
    if (napi_get_element(env, value, i, &entry) != napi_ok) return clearException(env), false;
    if (!toGid(env, entry, &gid)) return false;
    out->push_back(gid);
  }
  return true;
}

}  // namespace

// ── Life ────────────────────────────────────────────────────────────────────────────────────────────────────

Napi::Function NativeHca::define(Napi::Env env) {
  using H = NativeHca;
  return DefineClass(env, "NativeHca",
                     {InstanceAccessor<&H::getKernelId>("kernelId"),
                      InstanceAccessor<&H::getSlot>("slot"),
                      InstanceAccessor<&H::getPeerExtensions>("peerExtensions"),
                      InstanceAccessor<&H::getHostLink>("hostLink"),
                      InstanceAccessor<&H::getWire>("wire"),
                      InstanceAccessor<&H::getWireProblem>("wireProblem"),
                      InstanceAccessor<&H::getLimits>("limits"),
                      InstanceAccessor<&H::getCommIdBase>("commIdBase"),
                      InstanceMethod<&H::configure>("configure"),
                      InstanceMethod<&H::setPkeyTable>("setPkeyTable"),
                      InstanceMethod<&H::addCqWaiter>("addCqWaiter"),
                      InstanceMethod<&H::removeCqWaiter>("removeCqWaiter"),
                      InstanceMethod<&H::endCqEvents>("endCqEvents"),
                      InstanceMethod<&H::openWire>("openWire"),
                      InstanceMethod<&H::openPort>("openPort"),
                      InstanceMethod<&H::releasePort>("releasePort"),
                      InstanceMethod<&H::counters>("counters"),
                      InstanceMethod<&H::objectCounts>("objectCounts"),
                      InstanceMethod<&H::statistics>("statistics"),
                      InstanceMethod<&H::replyToObserver>("replyToObserver"),
                      InstanceMethod<&H::close>("close")});
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
    napi_throw_type_error(env, nullptr, "openHca(options, onEvent, server): `onEvent` must be a function");
    return;
  }
  if (!readOptions(env, info[0], &engineOptions, &hostOptions, &problem)) {
    throwOptions(env, problem);
    return;
  }
  if (!face_.open(env)) return;

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
  signal_ = LoopSignal::open(
      data, [this] { LoopCallback::Scope(*onEvent_).call(0, nullptr); }, false);
  if (signal_ == nullptr) {
    napi_throw_error(env, nullptr, "cannot open the HCA: the event loop of this thread is ending");
    return;
  }
  signal_->notifyFirst();
  port_ = std::make_shared<HcaPort>(signal_);
  const Status attached = context_->engine()->attachKernel(port_.get(), &kernel_);
  if (attached != Status::kSuccess) {
    signal_->close();
    napi_throw_error(env, nullptr, "the HCA already serves the maximum of 63 soft kernels");
    return;
  }
  engine_ = context_->engine();
  host_ = &context_->host();
  open_ = true;
  teardown_ = data.teardown();
  teardown_->items.insert(this);
  CommandFace::Members members = face_.define(Value(), engine_);
  members.add<&Engine::allocateMr>("allocateMr");
  members.add<&Engine::createPkeyTable>("createPkeyTable");
  members.add<&Engine::queryPkeyTable>("queryPkeyTable");
  members.add<&Engine::destroyPkeyTable>("destroyPkeyTable");
  members.add<&Engine::setDreqOnExit>("setDreqOnExit");
  members.add<NativeHca, &NativeHca::takeEvent>(this, "takeEvent");
  members.add<NativeHca, &NativeHca::sendMad>(this, "sendMad");
  members.add<NativeHca, &NativeHca::claimPort>(this, "claimPort");
  Ref();  // events arrive even if JavaScript drops this object, until closeNow()
}

NativeHca::~NativeHca() {
  if (teardown_ == nullptr) return;
  closeNow();
  teardown_->items.erase(this);
}

void NativeHca::closeNow() {
  if (!open_) return;
  open_ = false;
  face_.close();
  host_->releaseKernel(kernel_);
  engine_->detachKernel(kernel_);  // the engine no longer calls port_ after this
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
Napi::Value NativeHca::getPeerExtensions(const Info& info) {
  return Napi::Number::New(info.Env(), Engine::extensions());
}
Napi::Value NativeHca::getHostLink(const Info& info) {
  return Napi::Number::New(info.Env(), static_cast<uint32_t>(host_->links()));
}
Napi::Value NativeHca::getWire(const Info& info) {
  static constexpr const char* kNames[] = {"never", "unused", "open", "held"};  // the names of Host::WireState
  return Napi::String::New(info.Env(), kNames[static_cast<size_t>(host_->wireState())]);
}
Napi::Value NativeHca::getWireProblem(const Info& info) { return Napi::String::New(info.Env(), host_->wireProblem()); }
Napi::Value NativeHca::getCommIdBase(const Info& info) {
  return Napi::Number::New(info.Env(), host_->commIdBase(kernel_));
}

Napi::Value NativeHca::getLimits(const Info& info) { return numbersToJs<HcaLimits>(info.Env(), engine_->options()); }

// ── Commands of the software HCA alone ──────────────────────────────────────────────────────────────────────

Napi::Value NativeHca::setPkeyTable(const Info& info) {
  Napi::Env env = info.Env();
  Handle table;
  std::vector<uint16_t> pkeys;
  std::vector<Gid> gids;
  if (!open_) return statusToJs(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &table) || !toPkeys(env, info[1], &pkeys) || !toGids(env, info[2], &gids)) {
    return statusToJs(env, Status::kInvalidParameter);
  }
  return statusToJs(env, engine_->setPkeyTable(table, std::move(pkeys), std::move(gids)));
}

Napi::Value NativeHca::sendMad(const Info& info) {
  Napi::Env env = info.Env();
  const Words& words = face_.words();
  Path path;
  uint16_t pkey;
  if (!open_) return statusToJs(env, Status::kDeviceRemoved);
  if (!words.path(&path) || !toUint(env, info[0], &pkey, 0xFFFF)) return statusToJs(env, Status::kInvalidParameter);
  port_->onSent(words.mad(), path.destination);
  return statusToJs(env, host_->sendMad(path, words.mad(), pkey));
}

Napi::Value NativeHca::claimPort(const Info& info) {
  Napi::Env env = info.Env();
  const Words& words = face_.words();
  uint32_t service, claim = 0;
  uint16_t port = 0;
  bool one = false;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &service) && toUint(env, info[1], &port, 65535) && toBool(env, info[2], &one)) {
    const Gid address = words.gid(0);
    status = host_->claimPort(kernel_, service, one ? &address : nullptr, &port, &claim);
  }
  words.words[0] = claim;
  words.words[1] = port;
  return statusToJs(env, status);
}

Napi::Value NativeHca::openWire(const Info& info) {
  return statusToJs(info.Env(), open_ ? host_->openWire() : Status::kDeviceRemoved);
}

Napi::Value NativeHca::openPort(const Info& info) {
  uint32_t claim;
  if (!open_) return statusToJs(info.Env(), Status::kDeviceRemoved);
  return statusToJs(info.Env(),
                    toU32(info.Env(), info[0], &claim) ? host_->openPort(claim) : Status::kInvalidParameter);
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
