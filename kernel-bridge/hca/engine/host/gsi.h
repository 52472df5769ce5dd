// QP1: finds the soft kernel, of this process or another, that a CM message is for.
//
// A connection request names a service id, which a port claim has. Every other message names the CM id of the side it
// goes to, and the id names its process and kernel. A message without an owner goes to any kernel of this process; its
// CM gives the standard's answer (REJ 8 to a REQ, DREP to a DREQ).
#pragma once
#include <utility>

#include "base/host_counters.h"
#include "engine/engine.h"
#include "slots/frame.h"
#include "slots/rdma_ports.h"
#include "slots/slots.h"

namespace nd {

class Gsi {
 public:
  Gsi(const Clock& clock, HostCounters& counters, RdmaPorts& ports, Slots& slots)
      : clock_(clock), counters_(counters), ports_(ports), slots_(slots) {}
  void setEngine(Engine* engine) { engine_ = engine; }

  // A packet for QP1: from BTH to the end, without ICRC. The engine's lock is held.
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  // The same, handed over by another process: this one is the last stop.
  void onHandedOver(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  // Whether a message was dropped since the last call because no descriptor was left to hand it over: nobody can say
  // then that it has no addressee.
  bool takeLacked() { return std::exchange(lacked_, false); }

 private:
  void route(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver);
  void routeByService(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver);
  void routeById(const PacketMeta& meta, const uint8_t* bth, uint32_t id, bool mayHandOver);
  void toEveryone(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver);
  void toKernel(KernelId kernel, const PacketMeta& meta, const uint8_t* bth);
  bool accepts(const uint8_t* bth, uint32_t length);  // counts what it does not

  const Clock& clock_;
  HostCounters& counters_;
  RdmaPorts& ports_;
  Slots& slots_;
  Engine* engine_ = nullptr;
  bool lacked_ = false;
};

}  // namespace nd
