// The requester: turns send WQEs into request packets, and retransmits them (IBA 1 §9.7.2–9.7.3, §9.7.5.1, §9.7.7;
// roce-wire §2.1–2.3, §2.5). requester.cc sends new packets, retransmission.cc retransmits and keeps the timers, and
// keep_alive.cc handles idle connections.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Requester : public Role {
 public:
  using Role::Role;

  // Sends at most `budget` packets that the queue pair may send now. Returns whether there are more.
  bool request(Qp& qp, uint32_t& budget);
  // Sends the packet of a request at the position of `rq`; for a READ, one for at most this many PSNs.
  void sendOne(Qp& qp, SendEntry& e, uint32_t most);
  // Sends a packet of one request that has been built in links.out, and records it.
  void sent(Qp& qp, uint32_t span, const Path& path);
  // Fills links.out with payload of the next request. Returns false if that fails; `e.status` gives the reason.
  bool gather(Qp& qp, SendEntry& e, uint32_t offset, uint32_t length);
  // Returns whether the next request's payload, which the ring could carry, is better sent by reference. It has one
  // SGE.
  bool mayReferToSource(Qp& qp, const SendEntry& e);

  // ── retransmission.cc
  // Returns how long an ACK may take; 0 means without limit.
  static uint64_t ackTimeout(const Qp& qp);
  void startAckTimer(Qp& qp);
  // Does the requester's part of the work for a timer that has fired. Returns the time of the next timer, or
  // UINT64_MAX.
  uint64_t onTimer(Qp& qp);
  void goBack(Qp& qp) { goBack(qp, qp.rq.una); }  // retransmits everything from the oldest packet on
  void repeatRefused(Qp& qp);                     // the RNR wait is over
  // Retransmits from the oldest packet on, with payload in the ring until everything now in flight is acknowledged.
  void carryInRing(Qp& qp, bool lasting);
  // Returns whether an idle connection probes its peer. On the local link it need not, since the OS reports a peer's
  // end and nothing is lost.
  static bool isProbed(const Qp& qp) { return !qp.local || !qp.local->up(); }

 private:
  // The states of a round of request(). A state is the kind of work that is next. Its function handles the work and
  // returns the next state. The last three states end the round.
  enum class State : uint8_t {
    kKeepAlive,
    kUnread,   // a WQE that has not been parsed
    kInvalid,  // one that cannot be executed
    kLocal,    // one that sends no packet
    kPacket,   // a packet of a request
    kIdle,     // nothing that may be sent; whatever it waits for schedules the queue pair
    kMore,     // more to be sent in the next step
    kFailed,   // nothing, because a request has failed and with it the queue pair or its send queue
  };
  struct Round {
    uint32_t& budget;   // packets
    uint32_t fast = 0;  // messages sent on the fast path
    bool sent = false;
  };
  State next(Qp& qp);
  State parsed(Qp& qp);
  State keepAlive(Qp& qp, Round& round);
  State unread(Qp& qp, Round& round);
  State invalid(Qp& qp);
  State local(Qp& qp);
  State packets(Qp& qp, Round& round);
  void goBack(Qp& qp, uint32_t from);
  void parse(Qp& qp);
  bool responseFits(Qp& qp, SgeList sges);
  void executeLocal(Qp& qp, SendEntry& e);
  bool begin(Qp& qp, SendEntry& e);
  bool roomOnLocalLink(Qp& qp, SendEntry& e, uint32_t* span);
  bool refersToSource(Qp& qp, const SendEntry& e, uint32_t length);
  bool mayLeave(Qp& qp, uint32_t span, bool mayTakeMore);
  bool sendPacketOf(Qp& qp, SendEntry& e, uint32_t span);
  void sendData(Qp& qp, SendEntry& e, uint32_t span);
  void sendRead(Qp& qp, SendEntry& e, uint32_t span);
  void sendAtomic(Qp& qp, SendEntry& e);
  void sendKeepAlive(Qp& qp);
  uint64_t onIdle(Qp& qp);  // does the same as onTimer() when nothing is outstanding
  void requestAck(Qp& qp);
  void onAckTimeout(Qp& qp);
  uint64_t probeDue(const Qp& qp) const;
  void probe(Qp& qp);
};

}  // namespace nd
