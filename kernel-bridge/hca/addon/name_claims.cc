#include "name_claims.h"

#include <cerrno>

#include "env.h"
#include "platform/local_names.h"

namespace nd::js {
namespace {

// "name/<name>" has one owner, and "name/<name>/<port>" contains the port on which the owner listens. A process that
// looks up the name reads the list of these names, for which it needs no connection.
std::string claimOf(const std::string& name) { return "name/" + name; }
std::string prefixOf(const std::string& name) { return claimOf(name) + "/"; }

// The OS releases both when the process ends, and the environment does so when it is torn down.
struct NameClaim final : Closable {
  NameClaim(EnvData& data, std::string claimed) : teardown(data.teardown()), name(std::move(claimed)) {
    teardown->items.insert(this);
  }
  ~NameClaim() override { teardown->items.erase(this); }
  Rank rank() const override { return Rank::kServer; }
  // The port is released first, so that it never coexists with another owner of the name.
  void closeNow() override {
    port.reset();
    owned.reset();
  }

  std::shared_ptr<Teardown> teardown;
  std::string name;
  UniqueFd owned, port;
};

bool toText(Napi::Value value, std::string* out) {
  if (!value.IsString()) return false;
  *out = value.As<Napi::String>().Utf8Value();
  return true;
}

NameClaim* toClaim(Napi::Value value) {
  return value.IsExternal() ? value.As<Napi::External<NameClaim>>().Data() : nullptr;
}

Napi::Value wrong(Napi::Env env, const char* sentence) {
  napi_throw_type_error(env, nullptr, sentence);
  return env.Undefined();
}

}  // namespace

Napi::Value claimName(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::string name;
  if (!toText(info[0], &name)) return wrong(env, "claimName(name): `name` must be a string");
  UniqueFd owned;
  if (const int error = LocalNames().claim(claimOf(name), &owned)) return Napi::Number::New(env, error);
  auto* const claim = new NameClaim(EnvData::of(env), std::move(name));
  claim->owned = std::move(owned);
  return Napi::External<NameClaim>::New(env, claim, [](Napi::Env, NameClaim* ended) { delete ended; });
}

Napi::Value publishPort(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  NameClaim* const claim = toClaim(info[0]);
  if (claim == nullptr || !info[1].IsNumber())
    return wrong(env, "publishPort(claim, port): `claim` must be a claim, `port` a number");
  int error = EBADF;
  if (claim->owned.valid())
    error = LocalNames().listenAt(prefixOf(claim->name) + std::to_string(info[1].As<Napi::Number>().Uint32Value()),
                                  &claim->port);
  return Napi::Number::New(env, error);
}

Napi::Value releaseName(const Napi::CallbackInfo& info) {
  if (NameClaim* const claim = toClaim(info[0])) claim->closeNow();
  return info.Env().Undefined();
}

Napi::Value portsOfName(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::string name;
  if (!toText(info[0], &name)) return wrong(env, "portsOfName(name): `name` must be a string");
  const auto listed = LocalNames().list(prefixOf(name));
  if (!listed) return env.Null();
  Napi::Array ports = Napi::Array::New(env);
  for (const std::string& port : *listed) ports.Set(ports.Length(), port);
  return ports;
}

}  // namespace nd::js
