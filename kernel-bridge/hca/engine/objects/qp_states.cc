#include "objects/qp_states.h"

#include "base/wire.h"

namespace nd {

using namespace abi;
using namespace qpmask;

namespace {

constexpr uint32_t kInitRc = kPkeyIndex | kPort | kAccess, kInitUd = kPkeyIndex | kPort | kQkey;
constexpr uint32_t kPathUc = kPath | kPathMtu | kDestinationQpn | kReceivePsn;
constexpr uint32_t kPathRc = kPathUc | kResponderResources | kMinRnrTimer;
constexpr uint32_t kSendRc = kAckTimeout | kRetryCount | kRnrRetry | kSendPsn | kInitiatorDepth;
constexpr uint32_t kRunRc = kCurrentState | kAccess | kMinRnrTimer, kRunUc = kCurrentState | kAccess,
                   kRunUd = kCurrentState | kQkey;
constexpr uint32_t kDrainedRc = kPort | kPath | kAckTimeout | kRetryCount | kRnrRetry | kInitiatorDepth |
                                kResponderResources | kAccess | kPkeyIndex | kMinRnrTimer;

constexpr Transition kTransitions[] = {
    {kQpsReset, kQpsInit, {{true, kInitRc, 0}, {true, kInitRc, 0}, {true, kInitUd, 0}}},
    {kQpsInit, kQpsInit, {{true, 0, kInitRc}, {true, 0, kInitRc}, {true, 0, kInitUd}}},
    {kQpsInit,
     kQpsRtr,
     {{true, kPathRc, kAccess | kPkeyIndex | kPatience | kExtensions}, {true, kPathUc, kAccess | kPkeyIndex}, {true, 0, kPkeyIndex | kQkey}}},
    {kQpsRtr, kQpsRts, {{true, kSendRc, kRunRc}, {true, kSendPsn, kRunUc}, {true, kSendPsn, kRunUd}}},
    {kQpsRts, kQpsRts, {{true, 0, kRunRc}, {true, 0, kRunUc}, {true, 0, kRunUd}}},
    {kQpsRts, kQpsSqd, {{true, 0, kDrainNotify}, {true, 0, kDrainNotify}, {true, 0, kDrainNotify}}},
    {kQpsSqd,
     kQpsSqd,
     {{true, 0, kDrainedRc}, {true, 0, kPath | kAccess | kPkeyIndex}, {true, 0, kPkeyIndex | kQkey}}},
    {kQpsSqd, kQpsRts, {{true, 0, kRunRc}, {true, 0, kRunUc}, {true, 0, kRunUd}}},
    {kQpsSqError, kQpsRts, {{false, 0, 0}, {true, 0, kCurrentState | kAccess}, {true, 0, kCurrentState | kQkey}}},
};
constexpr Transition::Masks kAlways = {true, 0, kCurrentState};

constexpr uint32_t kQpAccessBits = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic |
                                   kAccessLocalWrite | kAccessMwBind;

int typeIndex(uint32_t type) { return type == kQptRc ? 0 : type == kQptUc ? 1 : type == kQptUd ? 2 : -1; }

struct ValueRule {
  uint32_t bit;
  bool (*valid)(const EngineOptions&, const QpAttributes&);
};
constexpr ValueRule kValueRules[] = {
    {kAccess, [](const EngineOptions&, const QpAttributes& a) { return (a.access & ~kQpAccessBits) == 0; }},
    {kPort, [](const EngineOptions&, const QpAttributes& a) { return a.port == 1; }},
    {kPathMtu,
     [](const EngineOptions&, const QpAttributes& a) {
       return a.pathMtu >= 256 && a.pathMtu <= 4096 && (a.pathMtu & (a.pathMtu - 1)) == 0;
     }},
    {kDestinationQpn, [](const EngineOptions&, const QpAttributes& a) { return a.destinationQpn <= wire::kQpnMask; }},
    {kReceivePsn, [](const EngineOptions&, const QpAttributes& a) { return a.receivePsn <= wire::kPsnMask; }},
    {kSendPsn, [](const EngineOptions&, const QpAttributes& a) { return a.sendPsn <= wire::kPsnMask; }},
    {kResponderResources,
     [](const EngineOptions& o, const QpAttributes& a) { return a.responderResources <= o.maxReadDepth; }},
    {kInitiatorDepth, [](const EngineOptions& o, const QpAttributes& a) { return a.initiatorDepth <= o.maxReadDepth; }},
    {kMinRnrTimer, [](const EngineOptions&, const QpAttributes& a) { return a.minRnrTimer <= 31; }},
    {kAckTimeout, [](const EngineOptions&, const QpAttributes& a) { return a.ackTimeout <= 31; }},
    {kRetryCount, [](const EngineOptions&, const QpAttributes& a) { return a.retryCount <= 7; }},
    {kRnrRetry, [](const EngineOptions&, const QpAttributes& a) { return a.rnrRetry <= wire::kRnrForEver; }},
    {kPatience,
     [](const EngineOptions&, const QpAttributes& a) {
       return (a.patience & ~(rnrpatience::kResponder | rnrpatience::kRequester)) == 0;
     }},
    {kExtensions, [](const EngineOptions&, const QpAttributes& a) { return extensions::isValid(a.extensions); }},
};

}  // namespace

const Transition::Masks* findTransition(uint32_t type, uint32_t from, uint32_t to) {
  const int index = typeIndex(type);
  if (index < 0 || from > kQpsError) return nullptr;
  if (to == kQpsReset || to == kQpsError) return &kAlways;
  for (const Transition& t : kTransitions)
    if (t.from == from && t.to == to) return t.masks[index].possible ? &t.masks[index] : nullptr;
  return nullptr;
}

Status checkModify(const EngineOptions& options, uint32_t type, uint32_t state, uint32_t mask,
                   const QpAttributes& attributes, uint32_t* target) {
  if ((mask & kCurrentState) && attributes.currentState != state) return Status::kInvalidDeviceState;
  *target = mask & kState ? attributes.state : state;
  const Transition::Masks* masks = findTransition(type, state, *target);
  if (!masks || (*target == state && !(mask & kState) && (state == kQpsReset || state == kQpsError)))
    return Status::kInvalidDeviceState;
  const uint32_t given = mask & ~(kState | kCurrentState);
  if ((given & masks->required) != masks->required) return Status::kInvalidParameter;
  if (given & ~(masks->required | masks->optional)) return Status::kInvalidParameter;
  for (const ValueRule& rule : kValueRules)
    if ((given & rule.bit) && !rule.valid(options, attributes)) return Status::kInvalidParameter;
  return Status::kSuccess;
}

void applyAttributes(QpAttributes& to, uint32_t mask, const QpAttributes& from) {
  if (mask & kAccess) to.access = from.access;
  if (mask & kPkeyIndex) to.pkeyIndex = from.pkeyIndex;
  if (mask & kPort) to.port = from.port;
  if (mask & kQkey) to.qkey = from.qkey;
  if (mask & kPath) to.path = from.path;
  if (mask & kPathMtu) to.pathMtu = from.pathMtu;
  if (mask & kDestinationQpn) to.destinationQpn = from.destinationQpn;
  if (mask & kReceivePsn) to.receivePsn = from.receivePsn;
  if (mask & kSendPsn) to.sendPsn = from.sendPsn;
  if (mask & kResponderResources) to.responderResources = from.responderResources;
  if (mask & kInitiatorDepth) to.initiatorDepth = from.initiatorDepth;
  if (mask & kMinRnrTimer) to.minRnrTimer = from.minRnrTimer;
  if (mask & kAckTimeout) to.ackTimeout = from.ackTimeout;
  if (mask & kRetryCount) to.retryCount = from.retryCount;
  if (mask & kRnrRetry) to.rnrRetry = from.rnrRetry;
  if (mask & kPatience) to.patience = from.patience;
  if (mask & kExtensions) to.extensions = from.extensions;
}

}  // namespace nd
