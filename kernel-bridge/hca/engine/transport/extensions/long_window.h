// A congestion window beyond the option `window`, on far paths between two ends that have agreed on it
// (extensions::kLongWindow). path_model.h says by which rules it grows, and where they come from. congestion.h has what
// all peers get.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class LongWindow : public Role {
 public:
  using Role::Role;
  // Far below half of the PSNs there are, so that old and new ones are told apart (IBA 1 §9.7.1).
  static constexpr uint32_t kMostWindow = 1u << 21;

  // Something could be sent, were the window not full.
  void onFull(Qp& qp) const;
  void sample(SendState& rq, uint64_t sample) const;  // a round trip
  // Packets that the peer keeps, and answers that this side keeps, have left the network: they count for the limit of
  // PSNs, not for the window.
  bool takesBesideKept(const Qp& qp, uint32_t packets) const;

  // ── Where there is a model
  void grow(Qp& qp, uint32_t acknowledged) const;
  void onLoss(Qp& qp, uint32_t packets) const;
  void restartCurve(SendState& rq, uint32_t before) const;
  // Pacing. False: a timer is set.
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
