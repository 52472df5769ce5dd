// Recovery of lost responses to READs and ATOMICs, between two peers that have agreed on it
// (extensions::kLostResponses, which needs kRecovery). The requester keeps responses that follow a gap and re-requests
// exactly the missing ones. The responder continues with what it has to send. Towards all other peers the requester
// goes back to the first missing response, and no packet of this extension is sent.
//
// A selective re-request is a request with the PSN of the first missing response and, for a READ, the address and
// length of a part. Its solicited-event bit is set, which no other READ or ATOMIC sets. Its response has AckReq set,
// which standard responses never have, so the requester can identify responses to re-requests. Repeated responses are
// sent before others, in the order of the re-requests. A response that has not yet been sent for the first time is not
// repeated.
//
// Responses thus arrive in two orders: first transmissions in the order of their PSNs, and repeated ones in the order
// of the re-requests. In each order, a response counts as lost when three later ones have arrived. An ACK follows all
// responses.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class LostResponses : public Role {
 public:
  using Role::Role;
  static bool agreed(const Qp& qp) {
    constexpr uint32_t both = extensions::kRecovery | extensions::kLostResponses;
    return (qp.attributes.extensions & both) == both && !qp.local;
  }

  // ── Requester
  // Returns the end of what the peer has executed.
  static uint32_t executed(const Qp& qp) {
    const SendState& rq = qp.rq;
    return qp.has(kResponseGap) && wire::psnDiff(rq.responses->executed, rq.una) > 0 ? rq.responses->executed : rq.una;
  }
  void keep(Qp& qp, const Packet& p);     // keeps a response that follows a gap
  void onNext(Qp& qp, const Packet& p);   // the next response, which has been processed
  void onExecuted(Qp& qp, uint32_t end);  // an ACK or NAK shows that everything before `end` has been executed and
                                          // answered
  void deliver(Qp& qp);                   // the gap may be closed: processes the responses that follow
  // Returns whether the peer may already have answered the request to be sent, which has this many PSNs.
  bool isReRequest(Qp& qp, uint32_t span);
  // Re-requests lost responses, within the budget. Returns false if there are more.
  bool reRequest(Qp& qp, uint32_t& budget);
  // Re-requests the oldest missing response. Returns false if it does not belong to a READ or ATOMIC.
  bool probe(Qp& qp);
  // Called when everything from a PSN on is retransmitted. Kept responses stay. Returns the number of earlier requests
  // that wait for responses.
  uint32_t startOver(Qp& qp, uint32_t from);

  // ── Responder
  // Handles a request that has been executed before.
  void onRepeated(Qp& qp, const Packet& p);

 private:
  ResponseScoreboard& board(Qp& qp);
  void see(Qp& qp, const Packet& p);
  void onProbed(Qp& qp);
  uint32_t examine(Qp& qp, uint32_t end);
  uint32_t settle(Qp& qp, uint32_t position);
  static uint32_t requestsBefore(Qp& qp, uint32_t end);
  uint32_t missingFrom(const Qp& qp, uint32_t psn, uint32_t most) const;
  bool part(Qp& qp, const Packet& p, Resource& r, ResponseJob* job) const;
};

}  // namespace nd
