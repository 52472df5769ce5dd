// The responder: checks and executes request packets (IBA 1 §9.7.4; roce-wire §3). responder.cc executes those that
// come for the first time, duplicate_requests.cc answers the others. The responses, below, are responses.cc's.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Responder : public Role {
 public:
  using Role::Role;

  void onRequest(Qp& qp, const Packet& p);
  void take(Qp& qp, const Packet& p);  // the same of one packet, and not of those that are kept behind it

  // ── A message's receive, of connections and of datagrams
  bool takeReceive(Qp& qp, const Packet& p);  // false: there is none, and the packet is done with
  bool beginReceive(Qp& qp);                  // false: the WQE's list is longer than its place
  // Writes the payload at a message offset of the receive. 0, a WV_WC_STATUS, or Context::kUnpulled.
  uint32_t scatterToReceive(Qp& qp, uint32_t offset, const Packet& p);
  void completeReceive(Qp& qp, const Packet& p, uint32_t opcode, uint32_t length);
  // A request that cannot be executed: a NAK, after which the queue pair fails; of an unreliable one only the message
  // is lost.
  void refuse(Qp& qp, uint8_t syndrome, uint32_t psn, uint32_t receiveStatus, uint32_t reason);

  // ── duplicate_requests.cc
  void resizeResources(Qp& qp);  // to what the attributes say

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
// Responses leave in request order. READ and ATOMIC responses stand in a queue; ACKs and NAKs wait until it is empty.
// ACKs are coalesced: one for all packets of a poll.
class Responses : public Role {
 public:
  using Role::Role;

  // Sends what is to be answered, at most `budget` packets. True: there is more.
  bool respond(Qp& qp, uint32_t& budget);
  // An ACK is due. `awaited`: the peer waits for it.
  void scheduleAck(Qp& qp, bool awaited);
  void acknowledge(Qp& qp);
  // Before a queue pair ends: the peer is not to repeat, nor to count as lost, what has been taken.
  void acknowledgeLast(Qp& qp);
  // The ACK that goes along with another packet on the local link, as LocalEntry has it; 0: none.
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
