// The responder: checks and executes request packets (IBA 1 §9.7.4; roce-wire §3). Its answers are in responses.h.
#pragma once
#include "transport/role.h"

namespace nd {

class Responder : public Role {
 public:
  using Role::Role;

  void onRequest(Qp& qp, const Packet& p);

  // ── A message's receive, of connections and of datagrams
  bool takeReceive(Qp& qp, const Packet& p);  // false: there is none, and the packet is done with
  bool beginReceive(Qp& qp);                  // false: the WQE's list is longer than its place
  // Writes the payload at a message offset of the receive. 0, a WV_WC_STATUS, or Context::kUnpulled.
  uint32_t scatterToReceive(Qp& qp, uint32_t offset, const Packet& p);
  void completeReceive(Qp& qp, const Packet& p, uint32_t opcode, uint32_t length);
  // A request that cannot be executed: a NAK, after which the queue pair fails; of an unreliable one only the message is lost.
  void refuse(Qp& qp, uint8_t syndrome, uint32_t psn, uint32_t receiveStatus, uint32_t reason);

 private:
  bool inSequence(Qp& qp, const Packet& p);
  bool admits(Qp& qp, const Packet& p);
  void accepted(Qp& qp, const Packet& p);
  void onSend(Qp& qp, const Packet& p);
  void onWrite(Qp& qp, const Packet& p);
  void onReadRequest(Qp& qp, const Packet& p);
  void onAtomic(Qp& qp, const Packet& p);
  void remember(Qp& qp, const Resource& resource, bool inRing);
  void onDuplicate(Qp& qp, const Packet& p);
  void refusePull(Qp& qp);
};

}  // namespace nd
