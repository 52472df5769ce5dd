// Queue pairs.
#include "hca.h"
#include "hca_commands.h"

namespace nd::js {

namespace {

// One table for modifyQp and queryQp: name, member, largest value, mask bit.
struct Attribute {
  const char* name;
  uint32_t QpAttributes::*member;
  double max;
  uint32_t mask;
};

constexpr Attribute kAttributes[] = {
    {"state", &QpAttributes::state, 6, qpmask::kState},
    {"currentState", &QpAttributes::currentState, 6, qpmask::kCurrentState},
    {"access", &QpAttributes::access, 0x1F, qpmask::kAccess},
    {"pkeyIndex", &QpAttributes::pkeyIndex, 0xFFFF, qpmask::kPkeyIndex},
    {"port", &QpAttributes::port, 0xFF, qpmask::kPort},
    {"qkey", &QpAttributes::qkey, 4294967295.0, qpmask::kQkey},
    {"pathMtu", &QpAttributes::pathMtu, 4096, qpmask::kPathMtu},
    {"destinationQpn", &QpAttributes::destinationQpn, 0xFFFFFF, qpmask::kDestinationQpn},
    {"receivePsn", &QpAttributes::receivePsn, 0xFFFFFF, qpmask::kReceivePsn},
    {"sendPsn", &QpAttributes::sendPsn, 0xFFFFFF, qpmask::kSendPsn},
    {"responderResources", &QpAttributes::responderResources, 0xFFFF, qpmask::kResponderResources},
    {"initiatorDepth", &QpAttributes::initiatorDepth, 0xFFFF, qpmask::kInitiatorDepth},
    {"minRnrTimer", &QpAttributes::minRnrTimer, 31, qpmask::kMinRnrTimer},
    {"ackTimeout", &QpAttributes::ackTimeout, 31, qpmask::kAckTimeout},
    {"retryCount", &QpAttributes::retryCount, 7, qpmask::kRetryCount},
    {"rnrRetry", &QpAttributes::rnrRetry, 7, qpmask::kRnrRetry},
};

}  // namespace

Napi::Value NativeHca::createQp(const Info& info) {
  QpCreate request;
  request.kernel = kernel_;
  Reader reader(info.Env(), info[0]);
  reader.uint("pd", &request.pd)
      .uint("sendCq", &request.sendCq)
      .uint("receiveCq", &request.receiveCq)
      .uint("srq", &request.srq)
      .uint("pkeyTable", &request.pkeyTable)
      .uint("type", &request.type)
      .boolean("signalAll", &request.signalAll)
      .uint("ringAddress", &request.ringAddress, kMaxSafe)
      .uint("ringBytes", &request.ringBytes, kMaxSafe)
      .uint("sendEntries", &request.sendEntries)
      .uint("sendStride", &request.sendStride)
      .uint("sendSge", &request.sendSge)
      .uint("maxInline", &request.maxInline)
      .uint("receiveEntries", &request.receiveEntries)
      .uint("receiveStride", &request.receiveStride)
      .uint("receiveSge", &request.receiveSge)
      .uint("token", &request.token);
  Handle qp = 0;
  uint32_t qpn = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (reader.ok()) {
    status = engine_->createQp(request, &qp, &qpn);
  }
  Napi::Object out = result(info.Env(), status);
  out.Set("qp", qp);
  out.Set("qpn", qpn);
  return out;
}

Napi::Value NativeHca::modifyQp(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  uint32_t mask;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !toU32(env, info[1], &mask)) return number(env, Status::kInvalidParameter);
  // Only what the mask names is read: the object is partial.
  QpAttributes attributes;
  Reader reader(env, info[2]);
  for (const Attribute& a : kAttributes) {
    if ((mask & a.mask) != 0) reader.uint(a.name, &(attributes.*a.member), a.max);
  }
  if ((mask & qpmask::kPath) != 0) reader.path("path", &attributes.path);
  if (!reader.ok()) return number(env, Status::kInvalidParameter);
  return number(env, engine_->modifyQp(qp, mask, attributes));
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
  Napi::Object values = Napi::Object::New(env);
  for (const Attribute& a : kAttributes) values.Set(a.name, attributes.*a.member);
  values.Set("type", attributes.type);
  values.Set("qpn", attributes.qpn);
  values.Set("path", pathToJs(env, attributes.path));
  Napi::Object out = result(env, status);
  out.Set("attributes", values);
  return out;
}

Napi::Value NativeHca::queryQpState(const Info& info) {
  Handle qp;
  QpAttributes attributes;
  const bool known = open_ && toU32(info.Env(), info[0], &qp) && engine_->queryQp(qp, &attributes) == Status::kSuccess;
  return Napi::Number::New(info.Env(), known ? static_cast<double>(attributes.state) : -1.0);
}

Napi::Value NativeHca::destroyQp(const Info& info) { return handleCommand(info, &Engine::destroyQp); }

Napi::Value NativeHca::setWill(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  Path path;
  Bytes mad;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !Reader::readPath(env, info[1], &path) || !toBytes(env, info[2], &mad) ||
      mad.length != 256) {
    return number(env, Status::kInvalidParameter);
  }
  return number(env, engine_->setWill(qp, path, mad.data));
}

}  // namespace nd::js
