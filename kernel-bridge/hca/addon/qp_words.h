// The words of queue pairs by name, in the order in which hca-words-put.ts writes them. A test compares the two.
#pragma once
#include <iterator>

#include "base/wire.h"
#include "convert.h"

namespace nd::js {

// One table for modifyQp, whose words are in this order, and queryQp: name, member, largest value, mask bit.
struct QpAttribute {
  const char* name;
  uint32_t QpAttributes::*member;
  double max;
  uint32_t mask;
};

constexpr QpAttribute kQpAttributes[] = {
    {"state", &QpAttributes::state, 6, qpmask::kState},
    {"currentState", &QpAttributes::currentState, 6, qpmask::kCurrentState},
    {"access", &QpAttributes::access, 0x1F, qpmask::kAccess},
    {"pkeyIndex", &QpAttributes::pkeyIndex, 0xFFFF, qpmask::kPkeyIndex},
    {"port", &QpAttributes::port, 0xFF, qpmask::kPort},
    {"qkey", &QpAttributes::qkey, 4294967295.0, qpmask::kQkey},
    {"pathMtu", &QpAttributes::pathMtu, 4096, qpmask::kPathMtu},
    {"destinationQpn", &QpAttributes::destinationQpn, wire::kQpnMask, qpmask::kDestinationQpn},
    {"receivePsn", &QpAttributes::receivePsn, wire::kPsnMask, qpmask::kReceivePsn},
    {"sendPsn", &QpAttributes::sendPsn, wire::kPsnMask, qpmask::kSendPsn},
    {"responderResources", &QpAttributes::responderResources, 0xFFFF, qpmask::kResponderResources},
    {"initiatorDepth", &QpAttributes::initiatorDepth, 0xFFFF, qpmask::kInitiatorDepth},
    {"minRnrTimer", &QpAttributes::minRnrTimer, 31, qpmask::kMinRnrTimer},
    {"ackTimeout", &QpAttributes::ackTimeout, 31, qpmask::kAckTimeout},
    {"retryCount", &QpAttributes::retryCount, 7, qpmask::kRetryCount},
    {"rnrRetry", &QpAttributes::rnrRetry, wire::kRnrForEver, qpmask::kRnrRetry},
    {"patience", &QpAttributes::patience, 3, qpmask::kPatience},
    {"extensions", &QpAttributes::extensions, 4294967295.0, qpmask::kExtensions},
};

// Calls `visit` with the name, the member and the largest value of each word of createQp; ends when `visit` refuses one.
template <typename Visit>
bool eachWordOfCreate(QpCreate& q, Visit visit) {
  constexpr double k32 = 4294967295.0, kSafe = kMaxSafe;
  return visit("pd", q.pd, k32) && visit("sendCq", q.sendCq, k32) && visit("receiveCq", q.receiveCq, k32) &&
         visit("srq", q.srq, k32) && visit("pkeyTable", q.pkeyTable, k32) && visit("type", q.type, k32) &&
         visit("signalAll", q.signalAll, 1.0) && visit("ringAddress", q.ringAddress, kSafe) &&
         visit("ringBytes", q.ringBytes, kSafe) && visit("sendEntries", q.sendEntries, k32) &&
         visit("sendStride", q.sendStride, k32) && visit("sendSge", q.sendSge, k32) &&
         visit("maxInline", q.maxInline, k32) && visit("receiveEntries", q.receiveEntries, k32) &&
         visit("receiveStride", q.receiveStride, k32) && visit("receiveSge", q.receiveSge, k32) &&
         visit("token", q.token, k32);
}

// The same for the numbers of a path.
template <typename Visit>
bool eachWordOfPath(Path& path, Visit visit) {
  return visit("flowLabel", path.flowLabel, 0xFFFFF) && visit("trafficClass", path.trafficClass, 0xFF) &&
         visit("hopLimit", path.hopLimit, 0xFF) && visit("scopeId", path.scopeId, 4294967295.0);
}

}  // namespace nd::js
