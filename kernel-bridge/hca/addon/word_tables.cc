// The order of words, and the numbers that TypeScript repeats, by their names there, so that a test can compare them.
#include "word_tables.h"

#include "base/wire.h"
#include "hca_events.h"
#include "hca_options.h"
#include "hca_words.h"

namespace nd::js {

namespace {

// Its name in hca-words-event.ts. A missing kind does not compile.
const char* nameOf(HcaEvent::Kind kind) {
  switch (kind) {
    case HcaEvent::Kind::kNone: return "none";
    case HcaEvent::Kind::kMad: return "mad";
    case HcaEvent::Kind::kQp: return "qp";
    case HcaEvent::Kind::kCq: return "cq";
    case HcaEvent::Kind::kSrq: return "srq";
    case HcaEvent::Kind::kNotified: return "notified";
    case HcaEvent::Kind::kCapture: return "capture";
    case HcaEvent::Kind::kFatal: return "fatal";
    case HcaEvent::Kind::kObserved: return "observed";
    case HcaEvent::Kind::kWireLost: return "wireLost";
  }
  return nullptr;
}

Napi::Object numbers(Napi::Env env, std::initializer_list<std::pair<const char*, uint32_t>> values) {
  Napi::Object out = Napi::Object::New(env);
  for (const auto& [name, value] : values) out.Set(name, value);
  return out;
}

Napi::Object qpMask(Napi::Env env) {
  Napi::Object out = numbers(env, {{"path", qpmask::kPath}, {"drainNotify", qpmask::kDrainNotify}});
  for (const QpAttribute& a : kQpAttributes) out.Set(a.name, a.mask);
  return out;
}

Napi::Object eventKinds(Napi::Env env) {
  Napi::Object out = Napi::Object::New(env);
  for (uint32_t kind = 0; const char* name = nameOf(static_cast<HcaEvent::Kind>(kind)); ++kind) out.Set(name, kind);
  return out;
}

Napi::Object eventWords(Napi::Env env) {
  Napi::Object out = Napi::Object::New(env);
  HcaEvent event;
  for (uint32_t kind = 0; const char* name = nameOf(static_cast<HcaEvent::Kind>(kind)); ++kind) {
    event.kind = static_cast<HcaEvent::Kind>(kind);
    Napi::Array words = Napi::Array::New(env);
    eachWordOfEvent(event, [&](const char* word, uint32_t) { words.Set(words.Length(), word); });
    out.Set(name, words);
  }
  return out;
}

// The options of an HCA that nobody has given any.
Napi::Object defaults(Napi::Env env) {
  const EngineOptions engine;
  const HostOptions host;
  const FaultOptions& given = host.faults;
  Napi::Object faults = Napi::Object::New(env), out = Napi::Object::New(env);
  faults.Set("seed", static_cast<double>(given.seed));
  faults.Set("drop", given.drop);
  faults.Set("duplicate", given.duplicate);
  faults.Set("reorder", given.reorder);
  faults.Set("corrupt", given.corrupt);
  faults.Set("dropMads", Napi::Object::New(env));
  out.Set("faults", faults);
  out.Set("keepAliveMs", static_cast<double>(engine.keepAliveNs) / 1e6);
  out.Set("rnrPatienceMs", static_cast<double>(engine.rnrPatienceNs) / 1e6);
  out.Set("ecn", engine.ecn);
  out.Set("window", engine.window);
  out.Set("longWindowBytes", static_cast<double>(engine.longWindowBytes));
  out.Set("link", host.link == LinkChoice::kAuto ? "auto" : "wire");
  out.Set("icrc", host.icrc == IcrcCheck::kSolved ? "solved" : "exact");
  out.Set("direct", host.direct);
  out.Set("capture", host.capturePath);
  out.Set("receiveBufferBytes", host.receiveBufferBytes);
  return out;
}

}  // namespace

Napi::Value wordTables(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Napi::Array create = Napi::Array::New(env), attributes = Napi::Array::New(env), path = Napi::Array::New(env);
  const auto addTo = [](Napi::Array& names) {
    return [&names](const char* name, auto&, double) {
      names.Set(names.Length(), name);
      return true;
    };
  };
  QpCreate someQp;
  Path somePath;
  eachWordOfCreate(someQp, addTo(create));
  eachWordOfPath(somePath, addTo(path));
  for (const QpAttribute& a : kQpAttributes) attributes.Set(attributes.Length(), a.name);

  Napi::Object out = Napi::Object::New(env);
  out.Set("qpCreate", create);
  out.Set("qpAttributes", attributes);
  out.Set("path", path);
  out.Set("places", numbers(env, {{"pathAt", Words::kPathAt}, {"madAt", Words::kMadAt}, {"madBytes", Words::kMadBytes}}));
  out.Set("qpMask", qpMask(env));
  out.Set("srqMask", numbers(env, {{"entries", srqmask::kEntries}, {"limit", srqmask::kLimit}}));
  out.Set("eventKind", eventKinds(env));
  out.Set("eventWords", eventWords(env));
  out.Set("defaults", defaults(env));
  return out;
}

}  // namespace nd::js
