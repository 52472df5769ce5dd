// The requester: turns send WQEs into request packets, and repeats them (IBA 1 §9.7.2–9.7.3, §9.7.5.1, §9.7.7;
// roce-wire §2.1–2.3, §2.5). requester.cc sends what is new, retransmission.cc what has to be sent again, and keeps the
// timers; keep_alive.cc is for idle connections.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Requester : public Role {
 public:
  using Role::Role;

  // Sends what the queue pair may send now, at most `budget` packets. True: there is more.
  bool request(Qp& qp, uint32_t& budget);
  // The packet of a request that `rq` stands at; of a READ, one for so many PSNs at most.
  void sendOne(Qp& qp, SendEntry& e, uint32_t most);
  // A packet of one request, built in links.out, leaves.
  void sent(Qp& qp, uint32_t span, const Path& path);
  // Fills links.out with payload of the next request. False: `e.status` says why not.
  bool gather(Qp& qp, SendEntry& e, uint32_t offset, uint32_t length);
  // Whether the next request's payload, which the ring could carry, is better named. It has one SGE.
  bool namesSource(Qp& qp, const SendEntry& e);

  // ── retransmission.cc
  // How long an ACK may take; 0: for ever.
  static uint64_t ackTimeout(const Qp& qp);
  void startAckTimer(Qp& qp);
  // The requester's part of a timer that came due. When it wants the next; UINT64_MAX: never.
  uint64_t onTimer(Qp& qp);
  void goBack(Qp& qp) { goBack(qp, qp.rq.una); }  // sends everything again from the oldest packet on
  void repeatRefused(Qp& qp);                     // the RNR wait is over
  // From the oldest packet on again, with payload in the ring until what is under way now is acknowledged.
  void carryInRing(Qp& qp, bool lasting);
  // Whether an idle connection asks if its peer is there. On the local link the system reports a peer's end, and
  // nothing is lost.
  static bool isProbed(const Qp& qp) { return !qp.local || !qp.local->up(); }

 private:
  // A round of request(). A state is what stands next in line; its function deals with it and returns the next state.
  // The last three end the round.
  enum class State : uint8_t {
    kKeepAlive,
    kUnread,   // a WQE that has not been parsed
    kInvalid,  // one that cannot be executed
    kLocal,    // one that sends no packet
    kPacket,   // a packet of a request
    kIdle,     // nothing that may leave; what it waits for schedules the queue pair
    kMore,     // what may leave in the next step
    kFailed,   // nothing: a request has failed, and the queue pair or its send queue with it
  };
  struct Round {
    uint32_t& budget;   // packets
    uint32_t fast = 0;  // messages that have taken the fast path
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
  bool answerFits(Qp& qp, SgeList sges);
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
  uint64_t onIdle(Qp& qp);  // as onTimer(), with nothing outstanding
  void requestAck(Qp& qp);
  void onAckTimeout(Qp& qp);
  uint64_t probeDue(const Qp& qp) const;
  void probe(Qp& qp);
};

}  // namespace nd
