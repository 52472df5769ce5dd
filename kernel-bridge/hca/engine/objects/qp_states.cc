#include "objects/qp_states.h"

#include "base/packet_headers.h"

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
     {{true, kPathRc, kAccess | kPkeyIndex | kRnrTimeout | kExtensions},
      {true, kPathUc, kAccess | kPkeyIndex},
      {true, 0, kPkeyIndex | kQkey}}},
    {kQpsRtr, kQpsRts, {{true, kSendRc, kRunRc}, {true, kSendPsn, kRunUc}, {true, kSendPsn, kRunUd}}},
    {kQpsRts, kQpsRts, {{true, 0, kRunRc}, {true, 0, kRunUc}, {true, 0, kRunUd}}},
    {kQpsRts, kQpsSqd, {{true, 0, kDrainNotify}, {true, 0, kDrainNotify}, {true, 0, kDrainNotify}}},
    {kQpsSqd, kQpsSqd, {{true, 0, kDrainedRc}, {true, 0, kPath | kAccess | kPkeyIndex}, {true, 0, kPkeyIndex | kQkey}}},
    {kQpsSqd, kQpsRts, {{true, 0, kRunRc}, {true, 0, kRunUc}, {true, 0, kRunUd}}},
    {kQpsSqError, kQpsRts, {{false, 0, 0}, {true, 0, kCurrentState | kAccess}, {true, 0, kCurrentState | kQkey}}},
};
constexpr Transition::Masks kAlways = {true, 0, kCurrentState};

constexpr uint32_t kQpAccessBits =
    kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic | kAccessLocalWrite | kAccessMwBind;

int typeIndex(uint32_t type) { return type == kQptRc ? 0 : type == kQptUc ? 1 : type == kQptUd ? 2 : -1; }

struct ValueRule {
  uint32_t bit;
  bool (*valid)(const HcaLimits&, const QpAttributes&);
};
constexpr ValueRule kValueRules[] = {
    {kAccess, [](const HcaLimits&, const QpAttributes& a) { return (a.access & ~kQpAccessBits) == 0; }},
    {kPort, [](const HcaLimits&, const QpAttributes& a) { return a.port == 1; }},
    {kPathMtu,
     [](const HcaLimits&, const QpAttributes& a) {
       return a.pathMtu >= 256 && a.pathMtu <= 4096 && (a.pathMtu & (a.pathMtu - 1)) == 0;
     }},
    {kDestinationQpn, [](const HcaLimits&, const QpAttributes& a) { return a.destinationQpn <= wire::kQpnMask; }},
    {kReceivePsn, [](const HcaLimits&, const QpAttributes& a) { return a.receivePsn <= wire::kPsnMask; }},
    {kSendPsn, [](const HcaLimits&, const QpAttributes& a) { return a.sendPsn <= wire::kPsnMask; }},
    {kResponderResources,
     [](const HcaLimits& o, const QpAttributes& a) { return a.responderResources <= o.maxReadDepth; }},
    {kInitiatorDepth, [](const HcaLimits& o, const QpAttributes& a) { return a.initiatorDepth <= o.maxReadDepth; }},
    {kMinRnrTimer, [](const HcaLimits&, const QpAttributes& a) { return a.minRnrTimer <= 31; }},
    {kAckTimeout, [](const HcaLimits&, const QpAttributes& a) { return a.ackTimeout <= 31; }},
    {kRetryCount, [](const HcaLimits&, const QpAttributes& a) { return a.retryCount <= 7; }},
    {kRnrRetry, [](const HcaLimits&, const QpAttributes& a) { return a.rnrRetry <= wire::kRnrForEver; }},
    {kRnrTimeout,
     [](const HcaLimits&, const QpAttributes& a) {
       return (a.rnrTimeout & ~(rnrtimeout::kResponder | rnrtimeout::kRequester)) == 0;
     }},
    {kExtensions, [](const HcaLimits&, const QpAttributes& a) { return extensions::isValid(a.extensions); }},
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

Status checkModify(const HcaLimits& limits, uint32_t type, uint32_t state, uint32_t mask,
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
    if ((given & rule.bit) && !rule.valid(limits, attributes)) return Status::kInvalidParameter;
  return Status::kSuccess;
}

void applyAttributes(QpAttributes& to, uint32_t mask, const QpAttributes& from) {
  if (mask & kPath) to.path = from.path;
  mask &= ~(kState | kCurrentState);
  QpAttributes::each([&](const char*, auto member, double, uint32_t bit) {
    if (mask & bit) to.*member = from.*member;
    return true;
  });
}

}  // namespace nd
