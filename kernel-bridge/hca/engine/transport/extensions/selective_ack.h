// Selective recovery, between two ends that have agreed on it (extensions::kRecovery): the responder keeps what comes
// behind a gap and says in its acknowledgements what it keeps; the requester sends only what is missing. Towards all
// other peers it does nothing, and no packet of its own leaves.
//
// A report is an ACK or a sequence NAK with a payload, which the standard's have not: pairs of PSNs, from the first to
// the last of what is kept, in order. What counts as lost is decided as TCP does (RFC 6675, and RFC 8985 for what was
// sent again).
#pragma once
#include "transport/scheduler.h"

namespace nd {

class SelectiveAck : public Role {
 public:
  using Role::Role;
  static bool agreed(const Qp& qp) { return (qp.attributes.extensions & extensions::kRecovery) != 0 && !qp.local; }

  // ── Responder
  // A request behind a gap. False: the standard's answer is due.
  bool keep(Qp& qp, const Packet& p);
  // The gap may be closed: executes what follows.
  void deliver(Qp& qp);
  // The payload of an ACK or NAK, in `out`; nothing where nothing is kept.
  void report(Qp& qp, OutPacket* out);

  // ── Requester
  // Takes a report: the payload of an ACK or NAK.
  void onReport(Qp& qp, const Packet& p);
  // PSNs from `before` on are acknowledged. How many of them were known to be kept.
  uint32_t onProgress(Qp& qp, uint32_t before);
  // The answer to a probe: what was sent before it and has not come is lost.
  void onProbed(Qp& qp);
  // The same of all up to a PSN.
  void giveUp(Qp& qp, uint32_t end);
  // Everything is sent again: nothing is known any more.
  void forget(Qp& qp);
  // Sends the oldest packet again. False: it is no packet of one request alone.
  bool probe(Qp& qp);
  // Sends what is lost, within the budget. False: there is more.
  bool resend(Qp& qp, uint32_t& budget);

  // ── Of both, and of answers (lost_responses.h)
  // Whether so many bytes more may be kept, of a packet behind `expected`. A connection may take half of what all
  // others leave: so there is always room for one more, whoever keeps much for long.
  bool mayKeep(const KeptPackets& kept, uint32_t expected, uint32_t psn, uint32_t length) const;
  // The packet that `bytes` have.
  static Packet keptPacket(const uint8_t* bytes, uint32_t length);
  // Sends the packet of a request again; of a READ, one for so many PSNs at most. What else is to be sent stays as it
  // is.
  void sendPart(Qp& qp, uint32_t psn, uint32_t wqe, uint32_t packet, uint32_t most);
  // So many packets, of requests or answers, are lost.
  void lose(Qp& qp, uint32_t packets, LossMark& mark);
  // The request that has a PSN, and the packet of it. False: a keep-alive has it, or none, and what is set says
  // nothing.
  static bool find(Qp& qp, uint32_t psn, uint32_t* wqe, uint32_t* packet);

 private:
  static constexpr uint32_t kMostRanges = 120, kRangeBytes = 8;
  static constexpr uint32_t kReportEvery = 8;  // packets behind the same gap

  static bool isReport(const Qp& qp, const Packet& p);
  void askForGap(Qp& qp);
  Scoreboard& board(Qp& qp);
  uint32_t examine(Qp& qp, uint32_t end);
  bool sendAgain(Qp& qp, uint32_t psn);
  uint8_t ranges_[kMostRanges * kRangeBytes];
};

}  // namespace nd
