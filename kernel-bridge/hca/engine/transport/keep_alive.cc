// The requester's keep-alives. An idle connection requests an ACK with a WRITE of 0 bytes (option keepAliveMs).
#include "transport/requester.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

uint64_t Requester::onIdle(Qp& qp) {
  SendState& rq = qp.rq;
  const uint64_t keepAlive = c_.options.keepAliveNs;
  if (!keepAlive || qp.state() != kQpsRts || !qp.reliable() || !isProbed(qp)) return UINT64_MAX;
  const uint64_t due = qp.lastActivity + keepAlive;
  if (c_.now < due) return due;
  if (qp.connected() && rq.head == rq.begun && !qp.has(kKeepAlive)) {
    qp.set(kKeepAlive);
    rq.keepAlivePsn = rq.psn;
    s_.schedule(qp);  // request() sets the ACK timer
  }
  return c_.now + keepAlive;
}

void Requester::sendKeepAlive(Qp& qp) {
  wire::emitReth(t_.links.begin(qp, wire::kOpWriteOnly, qp.rq.psn, true), {});
  qp.rq.sinceAck = 0;
  c_.counters.keepAlives++;
  sent(qp, 1, qp.route);
}

}  // namespace nd
