// Selective recovery, between two peers that have agreed on it (extensions::kRecovery). The responder keeps packets
// that follow a gap and reports them in its acknowledgements. The requester retransmits only the missing ones. Towards
// all other peers this class does nothing, and no packet of the extension is sent.
//
// A report is an ACK or a sequence NAK with a payload, which standard ones never have. The payload consists of pairs of
// PSNs: the first and the last of each kept range, in order. Losses are detected as in TCP (RFC 6675, and RFC 8985 for
// retransmissions).
#pragma once
#include "transport/scheduler.h"

namespace nd {

class SelectiveAck : public Role {
 public:
  using Role::Role;
  static bool agreed(const Qp& qp) { return (qp.attributes.extensions & extensions::kRecovery) != 0 && !qp.local; }

  // ── Responder
  // Keeps a request that follows a gap. Returns false if the standard response is due.
  bool keep(Qp& qp, const Packet& p);
  // Executes the packets that follow the gap, if it is closed.
  void deliver(Qp& qp);
  // Stores the payload of an ACK or NAK in `out`; it is empty if nothing is kept.
  void report(Qp& qp, OutPacket* out);

  // ── Requester
  // Processes a report: the payload of an ACK or NAK.
  void onReport(Qp& qp, const Packet& p);
  // Called when PSNs from `before` on have been acknowledged. Returns how many of them were known to be kept.
  uint32_t onProgress(Qp& qp, uint32_t before);
  // Processes the response to a probe. Whatever was sent before the probe and has not arrived is lost.
  void onProbed(Qp& qp);
  // Does the same for everything up to a PSN.
  void giveUp(Qp& qp, uint32_t end);
  // Drops all records, because everything is retransmitted.
  void forget(Qp& qp);
  // Retransmits the oldest packet. Returns false if it is not a packet of a single request.
  bool probe(Qp& qp);
  // Retransmits lost packets, within the budget. Returns false if there are more.
  bool resend(Qp& qp, uint32_t& budget);

  // ── For requests, and for responses (lost_responses.h)
  // Returns whether this many more bytes of a packet after `expected` may be kept. A connection may use half of what
  // all others leave, so there is always room for another connection.
  bool mayKeep(const KeptPackets& kept, uint32_t expected, uint32_t psn, uint32_t length) const;
  // Returns the packet contained in `bytes`.
  static Packet keptPacket(const uint8_t* bytes, uint32_t length);
  // Retransmits the packet of a request, which for a READ has at most this many PSNs. The position of regular sending
  // does not change.
  void sendPart(Qp& qp, uint32_t psn, uint32_t wqe, uint32_t packet, uint32_t most);
  // Called when this many packets, of requests or responses, are lost.
  void lose(Qp& qp, uint32_t packets, LossMark& mark);
  // Finds the request to which a PSN belongs, and the packet within it. Returns false, with undefined results, if the
  // PSN belongs to a keep-alive or to no request.
  static bool find(Qp& qp, uint32_t psn, uint32_t* wqe, uint32_t* packet);

 private:
  static constexpr uint32_t kMostRanges = 120, kRangeBytes = 8;
  static constexpr uint32_t kReportEvery = 8;  // packets that follow the same gap

  static bool isReport(const Qp& qp, const Packet& p);
  void requestGap(Qp& qp);
  Scoreboard& board(Qp& qp);
  uint32_t examine(Qp& qp, uint32_t end);
  bool sendAgain(Qp& qp, uint32_t psn);
  uint8_t ranges_[kMostRanges * kRangeBytes];
};

}  // namespace nd
