// Queue pairs.
#include "hca.h"
#include "hca_commands.h"

#include <iterator>

namespace nd::js {

namespace {

// One table for modifyQp, whose words are in this order, and queryQp: name, member, largest value, mask bit.
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
    {"patience", &QpAttributes::patience, 3, qpmask::kPatience},
};

// Reads what the mask names, and nothing else. False: a value that its attribute does not take.
bool readAttributes(const Words& words, uint32_t mask, QpAttributes* attributes) {
  bool good = (mask & qpmask::kPath) == 0 || words.path(&attributes->path);
  for (size_t i = 0; i < std::size(kAttributes); ++i) {
    const Attribute& a = kAttributes[i];
    if ((mask & a.mask) != 0) good = words.uint(i, &(attributes->*a.member), a.max) && good;
  }
  return good;
}

}  // namespace

Napi::Value NativeHca::createQpWords(const Info& info) {
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  QpCreate q;
  q.kernel = kernel_;
  const Words& w = words_;
  const bool good = w.uint(0, &q.pd) && w.uint(1, &q.sendCq) && w.uint(2, &q.receiveCq) && w.uint(3, &q.srq) &&
                    w.uint(4, &q.pkeyTable) && w.uint(5, &q.type) && w.uint(6, &q.signalAll, 1) &&
                    w.uint(7, &q.ringAddress, kMaxSafe) && w.uint(8, &q.ringBytes, kMaxSafe) && w.uint(9, &q.sendEntries) &&
                    w.uint(10, &q.sendStride) && w.uint(11, &q.sendSge) && w.uint(12, &q.maxInline) &&
                    w.uint(13, &q.receiveEntries) && w.uint(14, &q.receiveStride) && w.uint(15, &q.receiveSge) &&
                    w.uint(16, &q.token);
  Handle qp = 0;
  uint32_t qpn = 0;
  const Status status = good ? engine_->createQp(q, &qp, &qpn) : Status::kInvalidParameter;
  w.words[0] = qp;
  w.words[1] = qpn;
  return number(info.Env(), status);
}

Napi::Value NativeHca::modifyQpWords(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  uint32_t mask;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !toU32(env, info[1], &mask)) return number(env, Status::kInvalidParameter);
  QpAttributes attributes;
  const bool good = readAttributes(words_, mask, &attributes);
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
  // The steps say themselves which states they lead to.
  const uint32_t named = (masks[0] | masks[1] | masks[2]) & ~(qpmask::kState | qpmask::kCurrentState);
  QpAttributes attributes;
  good = readAttributes(words_, named, &attributes);
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

Napi::Value NativeHca::setWillWords(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  Path path;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !words_.path(&path)) return number(env, Status::kInvalidParameter);
  return number(env, engine_->setWill(qp, path, words_.mad()));
}

}  // namespace nd::js
