#include "udp/steering.h"

#include "base/packet_headers.h"
#include "platform/os.h"

namespace nd {
namespace {

// The offsets of the high and the low byte of the destination QPN.
constexpr uint32_t kSlotOffset = wire::kBthQpnAt, kIndexOffset = kSlotOffset + 2;

}  // namespace

void Steering::start(Descriptor socket, uint32_t ownSlot, uint64_t now) {
  socket_ = socket;
  ownSlot_ = ownSlot;
  indexOfSlot_.fill(kUnknown);
  // The rule applies to all sockets: the present one, which also handles the probes, stays until the replies have
  // produced a better one.
  lastProbe_ = now;
  fillRandom(&nonce_, sizeof nonce_);
  probed_ = kFirstRound;
  sendRound(now);
}

void Steering::onMisdirected(uint64_t now) {
  if (socket_ == kNoDescriptor || probed_ != 0 || now - lastProbe_ < kMinIntervalNs) return;
  probe(now);
}

void Steering::probe(uint64_t now) {
  lastProbe_ = now;
  fillRandom(&nonce_, sizeof nonce_);
  setRule();  // what is known so far, and the rule for probes: another user of the port may have left a different one
  probed_ = kFirstRound;
  sendRound(now);
}

void Steering::sendRound(uint64_t now) {
  slotOfIndex_.fill(kUnknown);
  answered_ = 0;
  nonce_++;
  deadline_ = now + kRoundNs;
  counters_.add(HostCounter::kSteeringProbes, probed_);
  for (uint32_t i = 0; i < probed_; i++) {
    SteeringProbe p;
    p.slot = ownSlot_;
    p.nonce = nonce_;
    p.index = i;
    sendProbe_(argument_, p);
  }
}

void Steering::onReply(const ProbeReply& reply) {
  if (probed_ == 0 || reply.nonce != nonce_ || reply.index >= probed_ || reply.slot >= kSlots) return;
  if (slotOfIndex_[reply.index] != kUnknown) return;
  slotOfIndex_[reply.index] = static_cast<uint8_t>(reply.slot);
  answered_++;
  if (answered_ == probed_) deadline_ = 0;  // all received: the next step of the host finishes the round
}

void Steering::onTime(uint64_t now) {
  if (now >= deadline_) finishRound(now);
}

void Steering::finishRound(uint64_t now) {
  deadline_ = UINT64_MAX;
  // A probe for an index beyond the group's end goes to a process that the OS chooses. That process also has a lower
  // index.
  std::array<uint8_t, kSlots> found{};
  found.fill(kUnknown);
  bool sawEnd = false;
  for (uint32_t i = 0; i < probed_; i++) {
    const uint8_t slot = slotOfIndex_[i];
    if (slot == kUnknown) continue;
    if (found[slot] == kUnknown) found[slot] = static_cast<uint8_t>(i);
    else sawEnd = true;
  }
  if (!sawEnd && answered_ != 0 && probed_ < SteeringProbe::kMaxIndex) {
    probed_ = probed_ * 2 < SteeringProbe::kMaxIndex ? probed_ * 2 : SteeringProbe::kMaxIndex;
    sendRound(now);
    return;
  }
  if (!ruled_) {
    // The previous rule may have been that of another program, or there was none. The replies then show nothing about
    // the indexes. They are used until a round under this package's rule has ended.
    if (answered_ != 0) indexOfSlot_ = found;
    return probe(now);
  }
  probed_ = 0;
  if (answered_ == 0) return;  // no loopback, or all are busy: forwarding continues
  indexOfSlot_ = found;
  setRule();
  counters_.add(HostCounter::kSteeringUpdates);
}

// If the OS refuses the rule, it spreads the packets itself, and forwarding does the rest.
void Steering::setRule() {
  ruled_ = true;
  static_assert(kUnknown == SharingRule::kNoIndex);
  setSharingRule(socket_, {kSlotOffset, indexOfSlot_.data(), kSlots, SteeringProbe::kQpnMark >> 16, kIndexOffset});
}

}  // namespace nd
