// Stubs for the roles of this folder, used when they are compiled out (ND_WITHOUT_EXTENSIONS). Every connection then
// follows the standard alone.
#pragma once
#include "transport/scheduler.h"

namespace nd {

constexpr uint32_t kBuiltExtensions = 0;

struct LongWindow : Role {
  using Role::Role;
  void onFull(Qp&) const {}
  void sample(SendState&, uint64_t) const {}
  bool takesBesideKept(const Qp&, uint32_t) const { return false; }
  void grow(Qp&, uint32_t) const {}
  void onLoss(Qp&, uint32_t) const {}
  void restartCurve(SendState&, uint32_t) const {}
  bool mayLeave(Qp&) const { return true; }
  void left(SendState&, uint32_t) const {}
};

struct SelectiveAck : Role {
  using Role::Role;
  static constexpr bool agreed(const Qp&) { return false; }
  bool keep(Qp&, const Packet&) { return false; }
  void deliver(Qp&) {}
  void report(Qp&, OutPacket*) {}
  void onReport(Qp&, const Packet&) {}
  uint32_t onProgress(Qp&, uint32_t) { return 0; }
  void onProbed(Qp&) {}
  void giveUp(Qp&, uint32_t) {}
  void forget(Qp&) {}
  bool probe(Qp&) { return false; }
  bool resend(Qp&, uint32_t&) { return true; }
  static bool find(Qp&, uint32_t, uint32_t*, uint32_t*) { return false; }
};

struct LostResponses : Role {
  using Role::Role;
  static constexpr bool agreed(const Qp&) { return false; }
  static uint32_t executed(const Qp& qp) { return qp.rq.una; }
  void keep(Qp&, const Packet&) {}
  void onNext(Qp&, const Packet&) {}
  void onExecuted(Qp&, uint32_t) {}
  void deliver(Qp&) {}
  bool isReRequest(Qp&, uint32_t) { return false; }
  bool reRequest(Qp&, uint32_t&) { return true; }
  bool probe(Qp&) { return false; }
  uint32_t startOver(Qp&, uint32_t) { return 0; }
  void onRepeated(Qp&, const Packet&) {}
};

struct Fragments : Role {
  using Role::Role;
  void suspect(Qp&) {}
  void onRepeated(Qp&, Resource&, uint32_t, uint32_t, uint32_t) {}
  bool send(Qp&, const Path& path, OutPacket& whole) { return c_.link.send(path, whole); }
  const uint8_t* receive(const PacketMeta&, const wire::Bth&, const uint8_t*, uint32_t, uint32_t*) {
    c_.counters.unknownOpcode++;
    return nullptr;
  }
};

}  // namespace nd
