// The order of words and the numbers that TypeScript writes a second time, by the names there, so that a test can compare them.
#include "word_tables.h"

#include "hca_events.h"
#include "hca_words.h"

namespace nd::js {

namespace {

// Its name in hca-words-event.ts. A kind that is not here does not compile.
const char* nameOf(HcaEvent::Kind kind) {
  switch (kind) {
    case HcaEvent::Kind::kNone: return "none";
    case HcaEvent::Kind::kMad: return "mad";
    case HcaEvent::Kind::kQp: return "qp";
    case HcaEvent::Kind::kCq: return "cq";
    case HcaEvent::Kind::kSrq: return "srq";
    case HcaEvent::Kind::kNotified: return "notified";
    case HcaEvent::Kind::kCapture: return "capture";
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
  out.Set("rnrPatience", numbers(env, {{"responder", rnrpatience::kResponder}, {"requester", rnrpatience::kRequester}}));
  out.Set("eventKind", eventKinds(env));
  return out;
}

}  // namespace nd::js
