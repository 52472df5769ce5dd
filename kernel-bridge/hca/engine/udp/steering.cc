#include "udp/steering.h"

#include <linux/filter.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <vector>

#include "base/wire.h"

namespace nd {
namespace {

// The program sees the UDP payload: the high and the low byte of the BTH's destination QPN.
constexpr uint32_t kSlotOffset = wire::kBthQpnAt, kIndexOffset = kSlotOffset + 2;
// An index that no group has: the system then chooses by the packet's addresses and ports.
constexpr uint32_t kNoIndex = 0xffff;

sock_filter instruction(uint16_t code, uint8_t onTrue, uint8_t onFalse, uint32_t k) {
  return sock_filter{code, onTrue, onFalse, k};
}

}  // namespace

void Steering::start(int fd, uint32_t ownSlot, uint64_t now) {
  fd_ = fd;
  ownSlot_ = ownSlot;
  indexOfSlot_.fill(kUnknown);
  // The program is the whole group's: the one that is there, which knows the probes as well, stays until the answers
  // have made a better one.
  lastProbe_ = now;
  drawNonce();
  probed_ = kFirstRound;
  sendRound(now);
}

void Steering::drawNonce() {
  if (getrandom(&nonce_, sizeof nonce_, GRND_NONBLOCK) != sizeof nonce_) nonce_++;
}

void Steering::onMisdirected(uint64_t now) {
  if (fd_ < 0 || probed_ != 0 || now - lastProbe_ < kMinIntervalNs) return;
  probe(now);
}

void Steering::probe(uint64_t now) {
  lastProbe_ = now;
  drawNonce();
  attach();  // what is known so far, and the probes' rule: another user of the port may have left another program
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
  if (answered_ == probed_) deadline_ = 0;  // all there: the next step of the host finishes the round
}

void Steering::onTime(uint64_t now) {
  if (now >= deadline_) finishRound(now);
}

void Steering::finishRound(uint64_t now) {
  deadline_ = UINT64_MAX;
  // A probe for an index beyond the group's end goes to a process that the system chooses, which has a lower index as well.
  std::array<uint8_t, kSlots> found{};
  found.fill(kUnknown);
  bool sawEnd = false;
  for (uint32_t i = 0; i < probed_; i++) {
    const uint8_t slot = slotOfIndex_[i];
    if (slot == kUnknown) continue;
    if (found[slot] == kUnknown)
      found[slot] = static_cast<uint8_t>(i);
    else
      sawEnd = true;
  }
  if (!sawEnd && answered_ != 0 && probed_ < SteeringProbe::kMaxIndex) {
    probed_ = probed_ * 2 < SteeringProbe::kMaxIndex ? probed_ * 2 : SteeringProbe::kMaxIndex;
    sendRound(now);
    return;
  }
  if (!attached_) {
    // The program that was there may not have been one of ours, or there was none: then the answers say nothing about the
    // indexes. They serve until a round under our own rule has ended.
    if (answered_ != 0) indexOfSlot_ = found;
    return probe(now);
  }
  probed_ = 0;
  if (answered_ == 0) return;  // no loopback, or everybody is busy: forwarding goes on
  indexOfSlot_ = found;
  attach();
  counters_.add(HostCounter::kSteeringUpdates);
}

void Steering::attach() {
  attached_ = true;
  std::vector<sock_filter> program;
  program.push_back(instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, kSlotOffset));
  program.push_back(instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, SteeringProbe::kQpnMark >> 16));
  program.push_back(instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, kIndexOffset));
  program.push_back(instruction(BPF_RET | BPF_A, 0, 0, 0));
  for (uint32_t slot = 0; slot < kSlots; slot++) {
    if (indexOfSlot_[slot] == kUnknown) continue;
    program.push_back(instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, slot));
    program.push_back(instruction(BPF_RET | BPF_K, 0, 0, indexOfSlot_[slot]));
  }
  program.push_back(instruction(BPF_RET | BPF_K, 0, 0, kNoIndex));
  sock_fprog attachment{static_cast<unsigned short>(program.size()), program.data()};
  // Refused (seccomp, an old kernel): the system spreads the packets and forwarding does the rest.
  setsockopt(fd_, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &attachment, sizeof attachment);
}

}  // namespace nd
