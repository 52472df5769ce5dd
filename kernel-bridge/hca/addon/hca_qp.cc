// Queue pairs.
#include "hca.h"
#include "hca_commands.h"

namespace nd::js {

Napi::Value NativeHca::createQpWords(const Info& info) {
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  QpCreate q;
  q.kernel = kernel_;
  const bool good = words_.read(&q);
  Handle qp = 0;
  uint32_t qpn = 0;
  const Status status = good ? engine_->createQp(q, &qp, &qpn) : Status::kInvalidParameter;
  words_.words[0] = qp;
  words_.words[1] = qpn;
  return number(info.Env(), status);
}

Napi::Value NativeHca::modifyQpWords(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  uint32_t mask;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !toU32(env, info[1], &mask)) return number(env, Status::kInvalidParameter);
  QpAttributes attributes;
  const bool good = words_.attributes(mask, &attributes);
  return number(env, good ? engine_->modifyQp(qp, mask, attributes) : Status::kInvalidParameter);
}

Napi::Value NativeHca::connectQpWords(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp = 0;
  std::array<uint32_t, 3> masks{};
  if (!open_) return number(env, Status::kDeviceRemoved);
  bool good = toU32(env, info[0], &qp);
  for (size_t step = 0; step < masks.size(); ++step) good = good && toU32(env, info[step + 1], &masks[step]);
  if (!good) return number(env, Status::kInvalidParameter);
  // Each step implies its own states.
  const uint32_t named = (masks[0] | masks[1] | masks[2]) & ~(qpmask::kState | qpmask::kCurrentState);
  QpAttributes attributes;
  good = words_.attributes(named, &attributes);
  return number(env, good ? engine_->connectQp(qp, masks, attributes) : Status::kInvalidParameter);
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
  Napi::Object out = result(env, status);
  out.Set("attributes", attributesToJs(env, attributes));
  return out;
}

Napi::Value NativeHca::queryQpState(const Info& info) {
  Handle qp;
  QpAttributes attributes;
  const bool known = open_ && toU32(info.Env(), info[0], &qp) && engine_->queryQp(qp, &attributes) == Status::kSuccess;
  return Napi::Number::New(info.Env(), known ? static_cast<double>(attributes.state) : -1.0);
}

Napi::Value NativeHca::destroyQp(const Info& info) { return handleCommand(info, &Engine::destroyQp); }

Napi::Value NativeHca::setWillWords(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  Path path;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !words_.path(&path)) return number(env, Status::kInvalidParameter);
  return number(env, engine_->setWill(qp, path, words_.mad()));
}

}  // namespace nd::js
