// Decides how much of a connection may be in flight. This comprises the congestion window, the response to ECN marks
// (RoCEv2 congestion management, IBA 1 annex A17 §17.9), the round-trip time, and which packets request an ACK.
//
// Towards any peer, losses and congestion notifications reduce the window, and acknowledged packets enlarge it. A loss
// halves the window. A notification reduces it by half the smoothed share of marked round trips (as in DCTCP, RFC 8257
// §3.3). Each acknowledged window adds one packet. For distant peers that accept long windows, see
// extensions/long_window.h.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Congestion : public Role {
 public:
  using Role::Role;
  static constexpr uint32_t kSmallestWindow = 4;

  // Returns whether this many more packets may be in flight. `mayTakeMore`: the request may use several windows of the
  // local link.
  bool windowTakes(const Qp& qp, uint32_t packets, bool mayTakeMore) const {
    const SendState& rq = qp.rq;
    const uint32_t inFlight = (rq.psn - rq.una) & wire::kPsnMask;
    if (!inFlight || inFlight + packets <= rq.window) return true;
    if (qp.has(kRecovering | kResponseGap)) return takesBesideKept(qp, inFlight + packets);
    return mayTakeMore && qp.local && inFlight + packets <= kLocalWindows * rq.window && !qp.local->crowded();
  }
  void openWindow(Qp& qp, uint32_t acknowledged) const;
  void reduceWindow(Qp& qp, uint32_t packets) const;
  // Called when the peer's responses show that this many packets are lost.
  void onLoss(Qp& qp, uint32_t packets) const;
  // Returns whether a packet of a SEND or WRITE sets AckReq. `last`: it ends its message.
  bool wantsAckRequest(Qp& qp, const SendEntry& e, bool last, uint32_t span) const;
  void sampleRoundTrip(SendState& rq) const;
  void takeSample(SendState& rq) const;  // the response to the timed request has arrived
  void onNotification(Qp& qp);           // a CNP
  void onMarked(Qp& qp);                 // a packet marked "congestion experienced"

 private:
  // Numbers of windows of small messages, and of READs, that may be in flight on the local link, where nothing is lost.
  // There is then room for the next share of a step while the peer processes one and its program handles the previous
  // one. A sleeping peer is woken for twice as many large READs. More than one window is used only if the ring is at
  // least half empty.
  static constexpr uint32_t kLocalWindows = 2;

  bool takesBesideKept(const Qp& qp, uint32_t packets) const;
};

}  // namespace nd
