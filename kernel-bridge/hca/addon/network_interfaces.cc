#include "network_interfaces.h"

#include "convert.h"
#include "platform/network_interfaces.h"
#include "platform/routes.h"

namespace nd::js {

Napi::Value interfaces(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::vector<NetworkInterface> all;
  const int error = listInterfaces(&all);
  if (error != 0) {
    const std::string text = std::string("cannot list the network interfaces: ") + std::strerror(error);
    napi_throw_error(env, nullptr, text.c_str());
    return env.Undefined();
  }
  Napi::Array out = Napi::Array::New(env, all.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    const NetworkInterface& from = all[i];
    Napi::Array addresses = Napi::Array::New(env, from.addresses.size());
    for (uint32_t a = 0; a < from.addresses.size(); ++a) {
      const InterfaceAddress& address = from.addresses[a];
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("gid", copyToJs(env, address.gid.raw.data(), address.gid.raw.size()));
      entry.Set("family", address.v4 ? 4 : 6);
      entry.Set("prefixLength", address.prefixLength);
      entry.Set("scopeId", address.scopeId);
      addresses.Set(a, entry);
    }
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", from.name);
    entry.Set("index", from.index);
    entry.Set("mtu", from.mtu);
    entry.Set("up", from.up);
    entry.Set("running", from.running);
    entry.Set("mac", copyToJs(env, from.mac.data(), from.mac.size()));
    entry.Set("addresses", addresses);
    out.Set(i, entry);
  }
  return out;
}

Napi::Value hostIdentityJs(const Napi::CallbackInfo& info) { return Napi::String::New(info.Env(), hostIdentity()); }

Napi::Value findRouteJs(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  RouteQuery query;
  Route route;
  Status status = Status::kInvalidParameter;
  if (toGid(env, info[0], &query.destination) && toGid(env, info[1], &query.source) &&
      toU32(env, info[2], &query.interface))
    status = findRoute(query, &route);
  Napi::Object out = Napi::Object::New(env);
  out.Set("status", static_cast<uint32_t>(status));
  out.Set("source", copyToJs(env, route.source.raw.data(), route.source.raw.size()));
  out.Set("interfaceIndex", route.interface);
  out.Set("mtu", route.mtu);
  return out;
}

}  // namespace nd::js
