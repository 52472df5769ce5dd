// Statistics of objects. They are read from state that the transport keeps anyway, and so cost nothing until they are
// requested.
#include <algorithm>

#include "engine/engine_impl.h"

namespace nd {
namespace {

// Returns the number of waiting entries in a queue. The producer's counter is in the program's memory and may have any
// value.
uint32_t waiting(const uint32_t* producer, uint32_t head, uint32_t entries) {
  return std::min(peekWord(producer) - head, entries);
}

QpStatistics statisticsOf(const Qp& qp) {
  QpStatistics s;
  s.source = qp.attributes.path.source;
  s.destination = qp.attributes.path.destination;
  s.qpn = qp.qpn;
  s.type = qp.attributes.type;
  s.state = qp.state();
  s.remoteQpn = qp.attributes.destinationQpn;
  s.mtu = qp.mtu;
  s.localLink = qp.local != nullptr;
  s.sendEntries = qp.sendEntries;
  s.sendWaiting = waiting(qp.header + abi::kQpSendProducer, qp.rq.head, qp.sendEntries);
  s.sent = qp.rq.head;
  s.sharedReceives = qp.srq != nullptr;
  if (!s.sharedReceives) {
    s.receiveEntries = qp.receiveEntries;
    s.receiveWaiting = waiting(qp.header + abi::kQpReceiveProducer, qp.rs.head, qp.receiveEntries);
    s.received = qp.rs.head;
  }
  s.window = qp.rq.window;
  s.inFlight = (qp.rq.psn - qp.rq.una) & wire::kPsnMask;
  s.retries = qp.rq.retries;
  s.rnrRetries = qp.rq.rnrRetries;
  s.rnrWaiting = qp.has(kRnrWait);
  s.roundTripNs = qp.rq.roundTrip;
  return s;
}

MemoryStatistics statisticsOf(const MemoryKey& key) {
  MemoryStatistics s;
  s.window = key.window;
  s.fast = key.fast;
  s.live = key.live;
  s.allocated = key.range != nullptr && key.range->shared != nullptr;
  s.length = key.fast && !key.live ? key.mostBytes : key.length;
  s.access = key.access;
  return s;
}

}  // namespace

Statistics Engine::statistics(uint32_t most) {
  Transport& t = impl_->transport;
  Statistics all;
  Command command(t);
  t.context.qps.forEach([&](const Qp& qp) {
    if (all.queuePairs.size() < most) all.queuePairs.push_back(statisticsOf(qp));
  });
  t.context.memory.forEachKey([&](const MemoryKey& key) {
    if (all.memory.size() < most) all.memory.push_back(statisticsOf(key));
  });
  t.context.srqs.forEach([&](const Srq& srq) { all.sharedReceived += srq.head; });
  return all;
}

}  // namespace nd
