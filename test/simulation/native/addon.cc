// The simulation for TypeScript. Only ../native-simulation.ts calls it.
#include <string>

#include "addon/napi_header.h"
#include "simulation.h"

namespace simulation {

namespace {

double number(const Napi::Object& o, const char* name, double otherwise) {
  const Napi::Value v = o.Get(name);
  return v.IsNumber() ? v.As<Napi::Number>().DoubleValue() : otherwise;
}

template <typename T>
void read(const Napi::Object& o, const char* name, T* to) {
  *to = static_cast<T>(number(o, name, static_cast<double>(*to)));
}

void read(const Napi::Object& o, const char* name, bool* to) {
  const Napi::Value v = o.Get(name);
  if (v.IsBoolean()) *to = v.As<Napi::Boolean>().Value();
}

void readRates(const Napi::Object& o, const char* name, FaultRates* to) {
  const Napi::Value v = o.Get(name);
  if (!v.IsObject()) return;
  const Napi::Object rates = v.As<Napi::Object>();
  read(rates, "loss", &to->loss);
  read(rates, "duplicate", &to->duplicate);
  read(rates, "delay", &to->delay);
  read(rates, "ancient", &to->ancient);
}

Gid gidOf(const Napi::Value& v) {
  Gid gid;
  std::memcpy(gid.raw.data(), v.As<Napi::Uint8Array>().Data(), gid.raw.size());
  return gid;
}

Path pathOf(const Napi::Object& o) {
  Path path;
  path.source = gidOf(o.Get("source"));
  path.destination = gidOf(o.Get("destination"));
  read(o, "flowLabel", &path.flowLabel);
  read(o, "trafficClass", &path.trafficClass);
  read(o, "hopLimit", &path.hopLimit);
  return path;
}

bool trafficOf(const Napi::Value& v, Traffic* t) {
  if (!v.IsObject()) return false;
  const Napi::Object o = v.As<Napi::Object>();
  static const char* const kinds[kRequestKinds] = {"send", "write", "writeImmediate", "read", "fetchAdd", "swap"};
  for (uint32_t i = 0; i < kRequestKinds; i++) t->weights[i] = number(o, kinds[i], 0);
  read(o, "minBytes", &t->minBytes);
  read(o, "maxBytes", &t->maxBytes);
  read(o, "depth", &t->depth);
  read(o, "receives", &t->receives);
  read(o, "messages", &t->messages);
  read(o, "thinkNs", &t->thinkNs);
  read(o, "late", &t->late);
  read(o, "lateNs", &t->lateNs);
  read(o, "inlined", &t->inlined);
  read(o, "unsignaled", &t->unsignaled);
  return true;
}

}  // namespace

class NativeSimulation : public Napi::ObjectWrap<NativeSimulation> {
 public:
  static Napi::Function define(Napi::Env env) {
    using N = NativeSimulation;
    return DefineClass(env, "NativeSimulation",
                       {
                           N::InstanceMethod("addHost", &N::addHost),
                           N::InstanceMethod("addSwitch", &N::addSwitch),
                           N::InstanceMethod("addLink", &N::addLink),
                           N::InstanceMethod("setPort", &N::setPort),
                           N::InstanceMethod("findRoutes", &N::findRoutes),
                           N::InstanceMethod("boot", &N::boot),
                           N::InstanceMethod("crash", &N::crash),
                           N::InstanceMethod("sendMad", &N::sendMad),
                           N::InstanceMethod("setTimer", &N::setTimer),
                           N::InstanceMethod("addFlow", &N::addFlow),
                           N::InstanceMethod("makeEndpoint", &N::makeEndpoint),
                           N::InstanceMethod("bring", &N::bring),
                           N::InstanceMethod("setDreqOnExit", &N::setDreqOnExit),
                           N::InstanceMethod("startFlow", &N::startFlow),
                           N::InstanceMethod("stopFlow", &N::stopFlow),
                           N::InstanceMethod("endEndpoint", &N::endEndpoint),
                           N::InstanceMethod("run", &N::run),
                           N::InstanceMethod("now", &N::now),
                           N::InstanceMethod("violations", &N::violations),
                           N::InstanceMethod("flowFigures", &N::flowFigures),
                           N::InstanceMethod("portFigures", &N::portFigures),
                           N::InstanceMethod("resetFigures", &N::resetFigures),
                           N::InstanceMethod("figures", &N::figures),
                           N::InstanceMethod("appliedFaults", &N::appliedFaults),
                           N::InstanceMethod("prescribeFaults", &N::prescribeFaults),
                           N::InstanceMethod("objectsLeft", &N::objectsLeft),
                           N::InstanceMethod("counters", &N::counters),
                       });
  }

  // (seed, news: Float64Array of 5, mad: Uint8Array of 256, gids: Uint8Array of 32)
  explicit NativeSimulation(const Napi::CallbackInfo& info)
      : Napi::ObjectWrap<NativeSimulation>(info), s_(uint64_t(at(info, 0))) {
    for (uint32_t i = 0; i < 3; i++) shared_[i] = Napi::Persistent(info[i + 1].As<Napi::Object>());
    news_ = info[1].As<Napi::Float64Array>().Data();
    mad_ = info[2].As<Napi::Uint8Array>().Data();
    gids_ = info[3].As<Napi::Uint8Array>().Data();
  }

 private:
  using Info = const Napi::CallbackInfo&;
  static double at(Info info, size_t i) { return info[i].As<Napi::Number>().DoubleValue(); }
  static uint32_t whole(Info info, size_t i) { return uint32_t(at(info, i)); }
  static Napi::Value give(Info info, double value) { return Napi::Number::New(info.Env(), value); }

  Napi::Value addHost(Info info) { return give(info, s_.addHost(gidOf(info[0]))); }
  Napi::Value addSwitch(Info info) { return give(info, s_.network.addSwitch()); }
  Napi::Value addLink(Info info) { return give(info, s_.network.addLink(whole(info, 0), whole(info, 1))); }
  void findRoutes(Info) { s_.network.findRoutes(); }

  void setPort(Info info) {
    Port& port = s_.network.ports[whole(info, 0)];
    const Napi::Object o = info[1].As<Napi::Object>();
    read(o, "nsPerByte", &port.nsPerByte);
    read(o, "delayNs", &port.delayNs);
    read(o, "capacity", &port.capacity);
    read(o, "mark", &port.mark);
    read(o, "mtu", &port.mtu);
    read(o, "up", &port.up);
    read(o, "longestDelayNs", &port.longestDelayNs);
    read(o, "longestAncientNs", &port.longestAncientNs);
    readRates(o, "data", &port.data);
    readRates(o, "mads", &port.mads);
  }

  void boot(Info info) {
    const Napi::Object o = info[1].As<Napi::Object>();
    HostOptions h;
    read(o, "slot", &h.slot);
    read(o, "skewPpm", &h.skewPpm);
    read(o, "startNs", &h.startNs);
    read(o, "polls", &h.polls);
    read(o, "stalls", &h.stalls);
    read(o, "single", &h.single);
    read(o, "longWindowBytes", &h.engine.longWindowBytes);
    read(o, "longestStallNs", &h.longestStallNs);
    read(o, "latencyNs", &h.latencyNs);
    read(o, "stepNs", &h.stepNs);
    read(o, "packetNs", &h.packetNs);
    read(o, "cqEntries", &h.cqEntries);
    read(o, "window", &h.engine.window);
    read(o, "ecn", &h.engine.ecn);
    read(o, "keepAliveNs", &h.engine.keepAliveNs);
    s_.boot(whole(info, 0), h);
  }

  void crash(Info info) { s_.crash(whole(info, 0)); }

  void sendMad(Info info) {
    if (Host* host = s_.host(whole(info, 0)))
      host->sendMad(pathOf(info[1].As<Napi::Object>()), info[2].As<Napi::Uint8Array>().Data(), whole(info, 3));
  }

  void setTimer(Info info) { s_.setTimer(whole(info, 0), uint64_t(at(info, 1)), whole(info, 2)); }

  Napi::Value addFlow(Info info) {
    Traffic forth, back;
    const bool hasForth = trafficOf(info[0], &forth), hasBack = trafficOf(info[1], &back);
    const bool mayFail = info[2].As<Napi::Boolean>().Value();
    return give(info,
                s_.flows.add(hasForth ? &forth : nullptr, hasBack ? &back : nullptr, mayFail, uint64_t(at(info, 3))));
  }

  Napi::Value makeEndpoint(Info info) {
    return give(info, s_.flows.makeEndpoint(*s_.host(whole(info, 0)), whole(info, 1), whole(info, 2)).id);
  }

  // (endpoint, attributes) → status; without attributes → QPN
  Napi::Value bring(Info info) {
    Endpoint& end = *s_.flows.endpoint(whole(info, 0));
    if (!info[1].IsObject()) return give(info, end.qpn);
    const Napi::Object o = info[1].As<Napi::Object>();
    QpAttributes a;
    a.path = pathOf(o.Get("path").As<Napi::Object>());
    read(o, "pathMtu", &a.pathMtu);
    read(o, "destinationQpn", &a.destinationQpn);
    read(o, "receivePsn", &a.receivePsn);
    read(o, "sendPsn", &a.sendPsn);
    read(o, "responderResources", &a.responderResources);
    read(o, "initiatorDepth", &a.initiatorDepth);
    read(o, "minRnrTimer", &a.minRnrTimer);
    read(o, "ackTimeout", &a.ackTimeout);
    read(o, "retryCount", &a.retryCount);
    read(o, "rnrRetry", &a.rnrRetry);
    read(o, "rnrTimeout", &a.rnrTimeout);
    read(o, "extensions", &a.extensions);
    return give(info, double(uint32_t(s_.flows.bring(end, a))));
  }

  void setDreqOnExit(Info info) {
    Endpoint& end = *s_.flows.endpoint(whole(info, 0));
    if (!end.qp) return;
    const Path path = pathOf(info[1].As<Napi::Object>());
    s_.expect(end.host->engine.setDreqOnExit(end.qp, path, info[2].As<Napi::Uint8Array>().Data()), "setDreqOnExit");
    end.host->arrange();
  }

  // (flow, client endpoint, server host, server QPN) → whether the server has this queue pair
  Napi::Value startFlow(Info info) {
    Host* const host = s_.host(whole(info, 2));
    Endpoint* const server = host ? s_.flows.byQpn(*host, whole(info, 3)) : nullptr;
    if (server) s_.flows.start(s_.flows.flow(whole(info, 0)), *s_.flows.endpoint(whole(info, 1)), *server);
    return Napi::Boolean::New(info.Env(), server != nullptr);
  }

  void stopFlow(Info info) { s_.flows.stop(s_.flows.flow(whole(info, 0))); }
  void endEndpoint(Info info) { s_.flows.end(*s_.flows.endpoint(whole(info, 0))); }

  // (until, in ns) → whether there is an event or a violation; a violation has kind 0
  Napi::Value run(Info info) {
    const bool stopped = s_.run(uint64_t(at(info, 0)));
    news_[0] = 0;
    if (stopped && !s_.news.empty() && s_.violations.empty()) {
      const News& one = s_.news.front();
      const double values[] = {double(one.kind), double(one.host), double(one.a), double(one.b), double(one.c)};
      std::memcpy(news_, values, sizeof values);
      if (one.kind == NewsKind::kMad) {
        std::memcpy(mad_, one.mad, sizeof one.mad);
        std::memcpy(gids_, one.source.raw.data(), 16);
        std::memcpy(gids_ + 16, one.destination.raw.data(), 16);
      }
      s_.news.pop_front();
    }
    return Napi::Boolean::New(info.Env(), stopped);
  }

  Napi::Value now(Info info) { return give(info, double(s_.agenda.now)); }

  Napi::Value violations(Info info) {
    Napi::Array all = Napi::Array::New(info.Env());
    for (uint32_t i = 0; i < s_.violations.size(); i++) all.Set(i, s_.violations[i]);
    return all;
  }

  // For each flow and direction: messages completed, bytes since the reset, start and end, and the status of the first
  // failure.
  Napi::Value flowFigures(Info info) {
    const uint32_t each = 5;
    Napi::Float64Array all = Napi::Float64Array::New(info.Env(), s_.flows.count() * 2 * each);
    double* to = all.Data();
    for (uint32_t i = 0; i < s_.flows.count(); i++) {
      for (const Half& half : s_.flows.flow(i).halves) {
        *to++ = double(half.completed);
        *to++ = double(half.bytes);
        *to++ = double(half.startedAt);
        *to++ = double(half.doneAt);
        *to++ = double(half.failure);
      }
    }
    return all;
  }

  Napi::Value portFigures(Info info) {
    const Port& port = s_.network.ports[whole(info, 0)];
    Napi::Object o = Napi::Object::New(info.Env());
    uint64_t left = port.samples / 100;  // 1% may find longer queues
    uint32_t bucket = Port::kBuckets - 1;
    while (bucket > 0 && port.seen[bucket] <= left) left -= port.seen[bucket--];
    o.Set("longest", double(port.longest));
    o.Set("most", double(bucket + 1) * double(port.capacity) / Port::kBuckets);
    o.Set("dropped", double(port.dropped));
    o.Set("tooLong", double(port.tooLong));
    o.Set("marked", double(port.marked));
    o.Set("sent", double(port.sent));
    o.Set("sentBytes", double(port.sentBytes));
    return o;
  }

  void resetFigures(Info) {
    s_.flows.resetFigures();
    for (Port& port : s_.network.ports) {
      port.seen.fill(0);
      port.samples = port.longest = port.dropped = port.tooLong = port.marked = port.sent = port.sentBytes = 0;
    }
  }

  Napi::Value figures(Info info) {
    Napi::Object o = Napi::Object::New(info.Env());
    o.Set("packets", double(s_.network.packets));
    o.Set("lost", double(s_.network.lost));
    o.Set("events", double(s_.events));
    o.Set("live", double(s_.network.live));
    char digest[17];
    std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(s_.network.digest));
    o.Set("digest", digest);
    return o;
  }

  Napi::Value appliedFaults(Info info) {
    const auto& faults = s_.network.applied;
    Napi::Float64Array all = Napi::Float64Array::New(info.Env(), faults.size() * 3);
    double* to = all.Data();
    for (const AppliedFault& f : faults) {
      *to++ = f.port;
      *to++ = double(f.number);
      *to++ = double(f.fault);
    }
    return all;
  }

  void prescribeFaults(Info info) {
    const Napi::Float64Array given = info[0].As<Napi::Float64Array>();
    std::vector<AppliedFault> faults;
    for (size_t i = 0; i + 2 < given.ElementLength(); i += 3)
      faults.push_back({uint32_t(given[i]), uint64_t(given[i + 1]), Fault(uint8_t(given[i + 2]))});
    s_.network.prescribe(faults);
  }

  Napi::Value objectsLeft(Info info) {
    Host* const host = s_.host(whole(info, 0));
    return give(info, host ? host->objectsLeft() : 0);
  }

  Napi::Value counters(Info info) {
    Napi::Object o = Napi::Object::New(info.Env());
    Host* const host = s_.host(whole(info, 0));
    if (!host) return o;
    const auto& names = Engine::counterNames();
    const auto values = host->engine.counters();
    for (size_t i = 0; i < names.size(); i++)
      if (values[i]) o.Set(names[i], double(values[i]));
    return o;
  }

  Simulation s_;
  Napi::ObjectReference shared_[3];
  double* news_;
  uint8_t *mad_, *gids_;
};

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("NativeSimulation", NativeSimulation::define(env));
  return exports;
}

NODE_API_MODULE(networkdirect_simulation, init)

}  // namespace simulation
