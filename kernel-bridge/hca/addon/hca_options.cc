#include "hca_options.h"

#include "platform/os.h"

#include "base/mad.h"

namespace nd::js {

namespace {

void expandProcessId(std::string* path) {
  const size_t at = path->find("%p");
  if (at != std::string::npos) path->replace(at, 2, std::to_string(ownProcessId()));
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
  constexpr uint32_t kAttributes = sizeof(out->dropMadCount) / sizeof(out->dropMadCount[0]);
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
    if (key.empty() || *end != '\0' || attribute < mad::kFirstAttribute || attribute >= mad::kFirstAttribute + kAttributes ||
        !toU32(env, number, &out->dropMadCount[attribute - mad::kFirstAttribute])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool readOptions(Napi::Env env, napi_value value, EngineOptions* engine, HostOptions* host, std::string* problem) {
  Reader reader(env, value);
  uint64_t keepAliveMs = 0, rnrPatienceMs = 0;
  std::string link, icrc;
  reader.uint("keepAliveMs", &keepAliveMs, 1e9)
      .uint("rnrPatienceMs", &rnrPatienceMs, 1e9)
      .boolean("ecn", &engine->ecn)
      .uint("window", &engine->window, 1 << 16)
      .uint("longWindowBytes", &engine->longWindowBytes, 1 << 30)
      .string("link", &link)
      .string("icrc", &icrc)
      .boolean("direct", &host->direct)
      .string("capturePath", &host->capturePath)
      .uint("receiveBufferBytes", &host->receiveBufferBytes, 1 << 30);
  reader.note(engine->window > 0, "window").note(link == "auto" || link == "wire", "link")
      .note(icrc == "solved" || icrc == "exact", "icrc");
  host->icrc = icrc == "exact" ? IcrcCheck::kExact : IcrcCheck::kSolved;
  host->link = link == "wire" ? LinkChoice::kWire : LinkChoice::kAuto;
  engine->keepAliveNs = keepAliveMs * 1'000'000;
  engine->rnrPatienceNs = rnrPatienceMs * 1'000'000;
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

}  // namespace nd::js
