// Answers to READs and ATOMICs that are lost, between two ends that have agreed on it (extensions::kAnswers, which
// needs kRecovery): the requester keeps what comes behind a gap and asks again for exactly what is missing; the
// responder goes on with what it has to send. Towards all other peers the requester goes back, and no packet of its own
// leaves.
//
// A question is a request with the PSN of the first that is missing, and for a READ with the address and length of a
// part. It has the solicited-event bit, which a READ or ATOMIC has not, and its answer has AckReq, which the standard's
// answers have not: so the requester knows which answers came because of it. Answers that are repeated leave before
// others, and in the order of the questions. What is still to be sent for the first time is not repeated.
//
// So there are two orders, and in each an answer is lost when three later ones have come: that of the PSNs, for what is
// sent for the first time, and that of the questions. An ACK comes after all answers.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class LostResponses : public Role {
 public:
  using Role::Role;
  static bool agreed(const Qp& qp) {
    constexpr uint32_t both = extensions::kRecovery | extensions::kAnswers;
    return (qp.attributes.extensions & both) == both && !qp.local;
  }

  // ── Requester
  // What the peer has executed ends here.
  static uint32_t executed(const Qp& qp) {
    const SendState& rq = qp.rq;
    return qp.has(kAnswerGap) && wire::psnDiff(rq.answers->executed, rq.una) > 0 ? rq.answers->executed : rq.una;
  }
  void keep(Qp& qp, const Packet& p);     // an answer behind a gap
  void onNext(Qp& qp, const Packet& p);   // the next one, which has been taken
  void onExecuted(Qp& qp, uint32_t end);  // an ACK or NAK says that everything before `end` is executed, and answered
  void deliver(Qp& qp);                   // the gap may be closed: takes what follows
  // Whether the request that is to leave, for so many PSNs, is one that the peer may have answered.
  bool asksAgain(Qp& qp, uint32_t span);
  // Asks for what is lost, within the budget. False: there is more.
  bool ask(Qp& qp, uint32_t& budget);
  // Asks for the oldest that is missing. False: it is of no READ or ATOMIC.
  bool probe(Qp& qp);
  // Everything is sent again from a PSN on. What is kept stays. How many requests before it wait for answers.
  uint32_t startOver(Qp& qp, uint32_t from);

  // ── Responder
  // A request that was executed before.
  void onRepeated(Qp& qp, const Packet& p);

 private:
  AnswerBoard& board(Qp& qp);
  void see(Qp& qp, const Packet& p);
  void onProbed(Qp& qp);
  uint32_t examine(Qp& qp, uint32_t end);
  uint32_t settle(Qp& qp, uint32_t position);
  static uint32_t requestsBefore(Qp& qp, uint32_t end);
  uint32_t missingFrom(const Qp& qp, uint32_t psn, uint32_t most) const;
  bool part(Qp& qp, const Packet& p, Resource& r, ResponseJob* job) const;
};

}  // namespace nd
