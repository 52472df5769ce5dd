#include "udp/udp_flow.h"

namespace nd {

bool UdpFlow::use(HostCounters& counters) {
  if (state_ == State::kReady) return true;
  if (state_ == State::kRefused || ++uses_ < kUsesBefore) return false;
  if (open()) {
    state_ = State::kReady;
    counters.add(HostCounter::kFlowsOpened);
    return true;
  }
  socket_.close();
  state_ = State::kRefused;  // for the lifetime of the entry
  counters.add(HostCounter::kFlowsRefused);
  return false;
}

bool UdpFlow::open() {
  if (socket_.openSender(path_, kRocePort, kSendBuffer) != 0) return false;
  staged_ = 0;
  icrc_ = FlowIcrc({path_.source, path_.destination, socket_.port()});
  uint16_t id = 0;
  if (isV4() && !socket_.learnId(path_, &id)) return false;
  nextId_ = static_cast<uint16_t>(id + 1);
  return true;
}

void UdpFlow::check(uint16_t id, HostCounters& counters) {
  uint16_t real;
  if (!socket_.takeId(path_, &real) || real == id) return;
  counters.add(HostCounter::kFlowsMiscounted);
  failed();
}

void UdpFlow::failed() {
  socket_.close();
  state_ = State::kCounting;
  uses_ = 0;
}

// ── Table ───────────────────────────────────────────────────────────────────────────────────────

UdpFlow* UdpFlows::find(const Path& path, uint32_t slot) {
  if (last_ != nullptr && last_->is(path, slot)) return last_;
  for (UdpFlow& flow : flows_)
    if (flow.is(path, slot)) return last_ = &flow;
  return nullptr;
}

UdpFlow& UdpFlows::oldest() {
  UdpFlow* oldest = &flows_[0];
  for (UdpFlow& flow : flows_)
    if (flow.used_ < oldest->used_) oldest = &flow;
  return *oldest;
}

bool UdpFlows::evicts(const Path& path, uint32_t slot) { return find(path, slot) == nullptr && oldest().ready(); }

UdpFlow& UdpFlows::at(const Path& path, uint32_t slot) {
  UdpFlow* flow = find(path, slot);
  if (flow == nullptr) {
    flow = last_ = &oldest();
    flow->failed();
    flow->path_ = path;
    flow->slot_ = slot;
  }
  flow->used_ = ++clock_;
  return *flow;
}

void UdpFlows::close() {
  for (UdpFlow& flow : flows_) {
    flow.failed();
    flow.used_ = 0;
  }
}

uint32_t UdpFlows::openSockets() const {
  uint32_t n = 0;
  for (const UdpFlow& flow : flows_) n += flow.ready();
  return n;
}

}  // namespace nd
