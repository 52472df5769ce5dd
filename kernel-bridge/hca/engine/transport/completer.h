// The completer: processes responses, completes send WQEs, and decides on retransmission (IBA 1 §9.7.5–9.7.6; roce-wire
// §2.4–2.6).
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Completer : public Role {
 public:
  using Role::Role;

  void onResponse(Qp& qp, const Packet& p);
  void onAcknowledged(Qp& qp, uint32_t psn);  // everything up to this PSN
  // The peer could not copy the payload of this side's packets from this PSN on. `lasting`: another attempt would fail
  // as well.
  void onUnpulled(LocalPair& pair, uint32_t sourceQpn, uint32_t qpn, uint32_t psn, bool lasting);
  // Completes the oldest request.
  void completeHead(Qp& qp);
  // Completes local work (bind, invalidate) that has been executed and is now the oldest.
  void retireLocal(Qp& qp);
  void failSend(Qp& qp, uint32_t status, uint32_t vendor, QpEvent event);
  bool advance(Qp& qp, uint32_t limit);        // false: a READ or ATOMIC without its response blocks it
  void takeResponse(Qp& qp, const Packet& p);  // takes the next response to a READ or ATOMIC

 private:
  void progressed(Qp& qp, uint32_t acknowledged);
  void retryNow(Qp& qp);
  void onNak(Qp& qp, uint8_t syndrome, uint32_t psn);
  bool rnrLimitExceeded(const Qp& qp) const;
  bool scatterToHead(Qp& qp, uint32_t offset, const Packet& p);
  void onReadResponse(Qp& qp, const Packet& p);
  void onAtomicAcknowledge(Qp& qp, const Packet& p);
};

}  // namespace nd
