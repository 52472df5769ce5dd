// Two HCAs with a UD queue pair each.
#pragma once
#include "world.h"

namespace world {

inline QpShape ud(Handle srq = 0) {
  QpShape s;
  s.type = kQptUd;
  s.srq = srq;
  return s;
}

constexpr uint32_t kKey = 0x11111111;

inline void bringUd(TestQp& qp, uint32_t qkey = kKey, uint32_t upTo = kQpsRts, uint32_t pkeyIndex = 0) {
  QpAttributes a;
  a.port = 1;
  a.qkey = qkey;
  a.pkeyIndex = pkeyIndex;
  a.sendPsn = 77;
  a.state = kQpsInit;
  CHECK_EQ(uint32_t(qp.modify(qpmask::kState | qpmask::kPkeyIndex | qpmask::kPort | qpmask::kQkey, a)), 0u);
  if (upTo == kQpsInit) return;
  a.state = kQpsRtr;
  CHECK_EQ(uint32_t(qp.modify(qpmask::kState, a)), 0u);
  if (upTo == kQpsRtr) return;
  a.state = kQpsRts;
  CHECK_EQ(uint32_t(qp.modify(qpmask::kState | qpmask::kSendPsn, a)), 0u);
}

struct UdWorld : World {
  TestQp qa, qb;
  Buffer from, to;
  Handle ah = 0;
  UdWorld() : qa(*a, ud(), 0xA), qb(*b, ud(), 0xB), from(*a, 8192, kAllAccess, 3), to(*b, 16384) {
    bringUd(qa);
    bringUd(qb);
    ah = handle(*a, b->gid);
  }
  static Handle handle(Node& n, const Gid& destination, uint32_t mtu = 1024) {
    Path path;
    path.source = n.gid;
    path.destination = destination;
    Handle h = 0;
    CHECK_EQ(uint32_t(n.engine.createAh(n.pd, path, mtu, &h)), 0u);
    return h;
  }
  Wr send(uint32_t offset, uint32_t length, uint32_t qpn, uint32_t flags = kSendFlagSignaled) {
    Wr w{kOpSend, flags, {{from.at(offset), length, from.lkey}}, 0x4321};
    w.ah = ah;
    w.remoteQpn = qpn;
    w.remoteQkey = kKey;
    return w;
  }
  void receive(TestQp& qp, uint32_t offset, uint32_t length) { qp.receive({{to.at(offset), length, to.lkey}}); }
};

inline Gid group(uint8_t n) {
  Gid g;
  g.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, n};
  return g;
}

}  // namespace world
