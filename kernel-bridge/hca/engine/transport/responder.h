// The responder: checks and executes request packets (IBA 1 §9.7.4; roce-wire §3). responder.cc executes new requests,
// and duplicate_requests.cc answers duplicates. responses.cc implements the responses, which are declared below.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Responder : public Role {
 public:
  using Role::Role;

  void onRequest(Qp& qp, const Packet& p);
  void take(Qp& qp, const Packet& p);  // handles a single packet, without those kept behind it

  // ── A message's receive, of connections and of datagrams
  bool takeReceive(Qp& qp, const Packet& p);  // false: none is left, and the packet has been handled
  bool beginReceive(Qp& qp);                  // false: the WQE's list is longer than its slot
  // Stores the payload at a message offset of the receive. Returns 0, a WV_WC_STATUS, or Context::kUnpulled.
  uint32_t scatterToReceive(Qp& qp, uint32_t offset, const Packet& p);
  void completeReceive(Qp& qp, const Packet& p, uint32_t opcode, uint32_t length);
  // Refuses a request that cannot be executed. It sends a NAK, after which the queue pair fails. On an unreliable queue
  // pair only the message is lost.
  void refuse(Qp& qp, uint8_t syndrome, uint32_t psn, uint32_t receiveStatus, uint32_t reason);

  // ── duplicate_requests.cc
  void resizeResources(Qp& qp);  // to the size that the attributes give

 private:
  bool inSequence(Qp& qp, const Packet& p);
  void accepted(Qp& qp, const Packet& p);
  void onSend(Qp& qp, const Packet& p);
  void onWrite(Qp& qp, const Packet& p);
  void onReadRequest(Qp& qp, const Packet& p);
  void onAtomic(Qp& qp, const Packet& p);
  bool hasResource(Qp& qp);
  void remember(Qp& qp, const Resource& resource, const Packet& p);
  void onDuplicate(Qp& qp, const Packet& p);
  void refusePull(Qp& qp);
};

// The responder's packets (IBA 1 §9.7.5; roce-wire §3): READ and ATOMIC responses, ACKs, NAKs, congestion
// notifications.
//
// Responses are sent in request order. READ and ATOMIC responses are queued; ACKs and NAKs wait until the queue is
// empty. ACKs are coalesced: one for all packets of a poll.
class Responses : public Role {
 public:
  using Role::Role;

  // Sends responses in at most `budget` packets. Returns whether there are more.
  bool respond(Qp& qp, uint32_t& budget);
  // Schedules an ACK. `awaited`: the peer waits for it.
  void scheduleAck(Qp& qp, bool awaited);
  void acknowledge(Qp& qp);
  // Called before a queue pair ends, so that the peer neither retransmits accepted packets nor counts them as lost.
  void acknowledgeLast(Qp& qp);
  // Returns the ACK carried by another packet on the local link, as stored in LocalEntry, or 0 if there is none.
  uint32_t carriedAck(Qp& qp);
  void sendCongestionNotification(Qp& qp);

 private:
  bool repeat(Qp& qp, uint32_t& budget);
  void refuseRepetition(Qp& qp, const ResponseJob& job);
  bool refersToTarget(Qp& qp, const ResponseJob& job);
  bool mayBeCopying(Qp& qp);
  bool sendReadResponse(Qp& qp, ResponseJob& job, uint32_t span);
  void sendAtomicResponse(Qp& qp, const ResponseJob& job);
  void sendAcknowledge(Qp& qp, uint8_t syndrome, uint32_t psn);
};

}  // namespace nd
