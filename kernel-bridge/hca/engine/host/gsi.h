// QP1: finds the soft kernel, in this process or another, to which a CM message is addressed.
//
// A connection request names a service id, which is owned by a port claim. Every other message names the CM id of the
// side to which it is sent, and that id identifies the process and the kernel. A message without an owner goes to any
// kernel of this process, whose CM sends the standard response (REJ 8 to a REQ, DREP to a DREQ).
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

  // Handles a packet for QP1, from BTH to the end without ICRC. The engine's lock is held.
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  // Handles such a packet forwarded by another process. This process does not forward it again.
  void onHandedOver(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  // Returns whether a message was dropped since the last call because no descriptor was available to forward it. It is
  // then unknown whether the message has an addressee.
  bool takeLacked() { return std::exchange(lacked_, false); }

 private:
  void route(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver);
  void routeByService(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver);
  void routeById(const PacketMeta& meta, const uint8_t* bth, uint32_t id, bool mayHandOver);
  void toEveryone(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver);
  void toKernel(KernelId kernel, const PacketMeta& meta, const uint8_t* bth);
  bool accepts(const uint8_t* bth, uint32_t length);  // counts messages that it rejects

  const Clock& clock_;
  HostCounters& counters_;
  RdmaPorts& ports_;
  Slots& slots_;
  Engine* engine_ = nullptr;
  bool lacked_ = false;
};

}  // namespace nd
