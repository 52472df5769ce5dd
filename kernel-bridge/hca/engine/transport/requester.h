// The requester: turns send WQEs into request packets, and repeats them (IBA 1 §9.7.2–9.7.3, §9.7.5.1, §9.7.7; roce-wire
// §2.1–2.3, §2.5). requester.cc sends what is new, retransmission.cc what has to be sent again, and keeps the timers.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Requester : public Role {
 public:
  using Role::Role;

  // Sends what the queue pair may send now, at most `budget` packets. True: there is more.
  bool request(Qp& qp, uint32_t& budget);
  // The packet of a request that `rq` stands at.
  void sendOne(Qp& qp, SendEntry& e);
  // A packet of one request, built in links.out, leaves.
  void sent(Qp& qp, uint32_t span, const Path& path);
  // Fills links.out with payload of the next request. False: `e.status` says why not.
  bool gather(Qp& qp, SendEntry& e, uint32_t offset, uint32_t length);
  // Whether the next request's payload, which the ring could carry, is better named.
  bool namesSource(Qp& qp);

  // ── retransmission.cc
  // How long an ACK may take; 0: for ever.
  static uint64_t ackTimeout(const Qp& qp);
  void startAckTimer(Qp& qp);
  // The requester's part of a timer that came due. When it wants the next; UINT64_MAX: never.
  uint64_t onTimer(Qp& qp);
  void goBack(Qp& qp);         // sends everything again from the oldest packet on
  void repeatRefused(Qp& qp);  // the RNR wait is over
  // From the oldest packet on again, with payload in the ring until what is under way now is acknowledged.
  void carryInRing(Qp& qp, bool lasting);
  // Whether an idle connection asks if its peer is there. On the local link the system reports a peer's end, and nothing
  // is lost: except by the fault layer, on a plain pair.
  static bool isProbed(const Qp& qp) { return !qp.local || !qp.local->up() || qp.local->plain; }

 private:
  void parse(Qp& qp, uint32_t wqe);
  void executeLocal(Qp& qp, SendEntry& e);
  bool begin(Qp& qp, SendEntry& e);
  void doLocally(Qp& qp, SendEntry& e);
  bool roomOnLocalLink(Qp& qp, SendEntry& e, uint32_t* span);
  bool refersToSource(Qp& qp, const SendEntry& e, uint32_t length);
  bool mayLeave(Qp& qp, uint32_t span, bool mayTakeMore);
  bool sendPacketOf(Qp& qp, SendEntry& e, uint32_t span);
  void sendData(Qp& qp, SendEntry& e, uint32_t span);
  void sendRead(Qp& qp, SendEntry& e, uint32_t span);
  void sendAtomic(Qp& qp, SendEntry& e);
  void sendKeepAlive(Qp& qp);
  void requestAck(Qp& qp);
  void onAckTimeout(Qp& qp);
  uint64_t probeDue(const Qp& qp) const;
  void probe(Qp& qp);
};

// Selective recovery, between two ends that have agreed on it (extensions::kRecovery): the responder keeps what comes behind a gap and
// says in its acknowledgements what it keeps; the requester sends only what is missing. Towards all other peers it does nothing, and no
// packet of its own leaves.
//
// A report is an ACK or a sequence NAK with a payload, which the standard's have not: pairs of PSNs, from the first to the last of what
// is kept, in order. What counts as lost is decided as TCP does (RFC 6675, and RFC 8985 for what was sent again).
class Recovery : public Role {
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
  // What a report says. False: it is malformed.
  bool onReport(Qp& qp, const Packet& p);
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

 private:
  static constexpr uint32_t kMostRanges = 120, kRangeBytes = 8;
  static constexpr uint32_t kReportEvery = 8;  // packets behind the same gap

  void askForGap(Qp& qp);
  Scoreboard& board(Qp& qp);
  bool find(Qp& qp, uint32_t psn, uint32_t* wqe, uint32_t* packet) const;
  uint32_t examine(Qp& qp, uint32_t end);
  void lose(Qp& qp, uint32_t packets);
  bool sendAgain(Qp& qp, uint32_t psn);
  uint8_t ranges_[kMostRanges * kRangeBytes];
};

}  // namespace nd
