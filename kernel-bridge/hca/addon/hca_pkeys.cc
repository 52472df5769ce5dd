// P_Key tables.
#include "hca.h"
#include "hca_commands.h"

namespace nd::js {

namespace {

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

Napi::Value NativeHca::createPkeyTable(const Info& info) {
  Handle table = 0;
  const Status status = open_ ? engine_->createPkeyTable(kernel_, &table) : Status::kDeviceRemoved;
  Napi::Object out = result(info.Env(), status);
  out.Set("table", table);
  return out;
}

Napi::Value NativeHca::setPkeyTable(const Info& info) {
  Napi::Env env = info.Env();
  Handle table;
  std::vector<uint16_t> pkeys;
  std::vector<Gid> gids;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &table) || !toPkeys(env, info[1], &pkeys) || !toGids(env, info[2], &gids)) {
    return number(env, Status::kInvalidParameter);
  }
  return number(env, engine_->setPkeyTable(table, std::move(pkeys), std::move(gids)));
}

Napi::Value NativeHca::queryPkeyTable(const Info& info) {
  Handle table;
  PkeyViolations violations;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(info.Env(), info[0], &table)) {
    status = engine_->queryPkeyTable(kernel_, table, &violations);
  }
  Napi::Object out = result(info.Env(), status);
  out.Set("badPkeys", static_cast<double>(violations.badPkeys));
  out.Set("badQkeys", static_cast<double>(violations.badQkeys));
  return out;
}

Napi::Value NativeHca::destroyPkeyTable(const Info& info) { return handleCommand(info, &Engine::destroyPkeyTable); }

}  // namespace nd::js
