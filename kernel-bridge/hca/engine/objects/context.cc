#include "objects/context.h"

#include "platform/os.h"

namespace nd {

using namespace abi;

Context::Context(Link& l, const Clock& c, const EngineOptions& o)
    : link(l),
      clock(c),
      options(o),
      pds(o.maxPd),
      cqs(o.maxCq),
      srqs(o.maxSrq),
      ahs(o.maxAh),
      qps(std::min(o.maxQp, kQpIndexes)),
      pkeyTables(o.maxPkeyTables),
      memory(options, l) {
  // QPNs start at a random number, so that a process's late packets do not reach its successor's queue pairs.
  fillRandom(&qpBase, sizeof qpBase);
  qpBase %= kQpIndexes;
}

Qp* Context::byQpn(uint32_t qpn) const {
  if (qpn >> 16 != slot) return nullptr;
  const uint32_t index = qpn & 0xFFFF;
  if (index < kFirstQpIndex) return nullptr;
  const uint32_t place = index - kFirstQpIndex;
  return qps.at(place >= qpBase ? place - qpBase : place + kQpIndexes - qpBase);
}

bool Context::refresh(RingPlace& place, const uint32_t* word, uint32_t entries) {
  if (place.ringFault) return false;
  const uint32_t producer = loadWord(word);
  const uint32_t filled = producer - place.head;
  // The counter is more than a ring ahead, or has moved backwards.
  if (filled > entries || filled < place.producer - place.head) {
    place.ringFault = true;
    counters.ringFaults++;
    return false;
  }
  place.producer = producer;
  return true;
}

uint32_t Context::pieces(const Pd* pd, KeyCache& cache, SgeList sges, SgeCursor& cursor, uint32_t offset,
                         uint32_t length, bool write, Piece* list, uint32_t* outCount, const SharedRange** shared) {
  if (cursor.offset != offset) {
    cursor = {};
    uint32_t skip = offset;
    for (; cursor.index < sges.count; cursor.index++) {
      const uint32_t all = sges.length(cursor.index);
      if (skip < all) break;
      skip -= all;
    }
    cursor.offset = offset;
    cursor.within = skip;
  }
  uint32_t n = *outCount;
  while (length > 0) {
    if (cursor.index >= sges.count || n >= OutPacket::kMaxPieces)
      return kWcLocalOp;  // the list changed during the
                          // call
    const uint32_t all = sges.length(cursor.index);
    const uint32_t left = all > cursor.within ? all - cursor.within : 0;
    if (left == 0) {
      cursor.index++;
      cursor.within = 0;
      continue;
    }
    const uint32_t take = std::min(left, length);
    const uint32_t lkey = sges.lkey(cursor.index);
    uint8_t* data = memory.local(cache, pd, lkey, sges.address(cursor.index) + cursor.within, take, write);
    if (!data) return kWcLocalProtection;
    if (shared) shared[n] = memory.sharedOf(cache, lkey);
    list[n++] = {data, take};
    length -= take;
    cursor.offset += take;
    cursor.within += take;
  }
  *outCount = n;
  return 0;
}

void Context::report(Qp& qp, QpEvent event, uint32_t reason) {
  if (KernelPort* port = kernels[qp.kernel]) port->onEvent(HcaEvent::qp(qp.handle, qp.token, event, reason));
}

// The CQ has failed; its QPs fail as soon as the current packet or command is finished.
void Context::overrun(Cq& cq) {
  counters.cqOverruns++;
  if (KernelPort* port = kernels[cq.kernel]) port->onEvent(HcaEvent::cq(cq.handle, CqEvent::kOverrun));
  qps.forEach([&](Qp& qp) {
    const bool uses = qp.sendCq == &cq || qp.receiveCq == &cq;
    if (uses && qp.state() != kQpsError) failing.push(qp);
  });
}

PkeyTable* Context::pkeyTable(KernelId kernel, Handle handle) {
  if (kernel >= kKernels || !kernels[kernel]) return nullptr;
  if (!handle) return &defaultPkeys[kernel];
  PkeyTable* table = pkeyTables.find(handle);
  return table && table->kernel == kernel ? table : nullptr;
}

bool Context::pkeyFits(Qp& qp, const Packet& p) {
  if (pkeysFit(p.bth.pkey, qp.pkey())) return true;
  counters.wrongPkey++;
  qp.pkeyTable->violations.badPkeys++;
  return false;
}

}  // namespace nd
