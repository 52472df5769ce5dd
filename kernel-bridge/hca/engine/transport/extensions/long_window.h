// A congestion window larger than the option `window`, on long paths between two peers that have agreed on it
// (extensions::kLongWindow). path_model.h describes the rules of its growth and their sources. congestion.h describes
// the window towards all peers.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class LongWindow : public Role {
 public:
  using Role::Role;
  // Far below half of the PSN space, so that old and new PSNs can be distinguished (IBA 1 §9.7.1).
  static constexpr uint32_t kMostWindow = 1u << 21;

  // Called when a packet could be sent if the window were not full.
  void onFull(Qp& qp) const;
  void sample(SendState& rq, uint64_t sample) const;  // a round-trip time
  // Packets that the peer keeps, and responses that this side keeps, have left the network: they count towards the PSN
  // limit but not towards the window.
  bool takesBesideKept(const Qp& qp, uint32_t packets) const;

  // ── Where there is a model
  void grow(Qp& qp, uint32_t acknowledged) const;
  void onLoss(Qp& qp, uint32_t packets) const;
  void restartCurve(SendState& rq, uint32_t before) const;
  // Applies pacing. Returns false if the packet has to wait, for which a timer has been set.
  bool mayLeave(Qp& qp) const;
  void left(SendState& rq, uint32_t span) const;

 private:
  uint32_t limitOf(const Qp& qp) const;
  void beginRound(SendState& rq) const;
  void endRound(Qp& qp) const;
  void growByCurve(SendState& rq, uint32_t acknowledged, double share) const;
  void weighLosses(SendState& rq) const;
  void drain(SendState& rq) const;
};

}  // namespace nd
