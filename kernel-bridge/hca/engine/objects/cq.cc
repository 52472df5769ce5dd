#include "objects/cq.h"
#include <algorithm>

namespace nd {

using namespace abi;

void Cq::attach(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount, uint32_t producerNow,
                uint32_t consumerNow) {
  ring_ = std::move(memory);
  words_ = reinterpret_cast<uint32_t*>(address);
  entries_ = entryCount;
  producer_ = producerNow;
  storeWord(words_ + kCqState, dead ? 1 : 0);
  storeWord(words_ + kCqConsumer, consumerNow);
  storeWord(words_ + kCqProducer, producerNow);
}

Status Cq::resize(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount) {
  if (dead) return Status::kInvalidDeviceState;
  const uint32_t n = untaken();
  if (n > entryCount) return Status::kBufferOverflow;
  const bool batch = batchLeft_ != 0;
  uint32_t* to = reinterpret_cast<uint32_t*>(address);
  for (uint32_t i = producer_ - n; i != producer_; i++) {
    std::memcpy(to + kCqHeaderBytes / 4 + size_t(i & (entryCount - 1)) * (kCqeBytes / 4),
                words_ + kCqHeaderBytes / 4 + size_t(i & (entries_ - 1)) * (kCqeBytes / 4), kCqeBytes);
  }
  attach(std::move(memory), address, entryCount, producer_, producer_ - n);
  // A batch that no longer fits is complete when the queue is full.
  if (batchLeft_ > entries_ - n) batchLeft_ = entries_ - n;
  if (batchLeft_ == 0 && batch) fire(sinceSolicited_ < pending());
  return Status::kSuccess;
}

uint32_t Cq::pending() const { return std::min(unannounced_, untaken()); }

void Cq::countArm(bool solicitedOnly) {
  if (listener_) return;  // no waiter will match its arms
  if (waitersAhead_ != 0) {
    waitersAhead_--;
  } else {
    saturatingIncrement(armsAhead_);
    if (solicitedOnly) saturatingIncrement(solicitedAhead_);
  }
}

void Cq::meetArm(uint32_t type) {
  if (armsAhead_ != 0) armsAhead_--;
  if (usedAhead_ != 0) usedAhead_--;
  if (type == kCqNotifySolicited && solicitedAhead_ != 0) solicitedAhead_--;
  solicitedAhead_ = std::min(solicitedAhead_, armsAhead_);
}

void Cq::arm(bool solicitedOnly) {
  countArm(solicitedOnly);
  arrange(solicitedOnly);
}

void Cq::armBatch(uint32_t count) {
  countArm(false);
  const uint32_t there = pending();
  if (count <= there) return fire(sinceSolicited_ < there);
  const uint32_t left = count - there;
  if (batchLeft_ == 0 || left < batchLeft_) batchLeft_ = left;
}

void Cq::arrange(bool solicitedOnly) {
  // Entries that the consumer has not taken and no event has announced count immediately.
  const bool solicitedPending = sinceSolicited_ < pending();
  if (solicitedOnly ? solicitedPending : pending() > 0) {
    fire(solicitedPending);
  } else if (!solicitedOnly) {
    armed_ = Arm::kAny;
  } else if (armed_ == Arm::kNone) {
    armed_ = Arm::kSolicited;
  }
}

void Cq::fire(bool solicited) {
  // An arm for any completion also serves earlier waiters for a solicited one.
  const bool upgraded = armed_ == Arm::kAny && solicitedAhead_ != 0;
  armed_ = Arm::kNone;
  batchLeft_ = 0;
  usedAhead_ = armsAhead_;
  unannounced_ = 0;
  if (events) ++*events;
  bool served = false;
  // ANY and SOLICITED waiters complete together. ERRORS waiters wait for the failure of the queue itself.
  auto rest = std::stable_partition(waiters_.begin(), waiters_.end(),
                                    [](const Waiter& w) { return w.type == kCqNotifyErrors; });
  for (auto it = rest; it != waiters_.end(); ++it) {
    it->sink->notify(Status::kSuccess);
    served = true;
  }
  waiters_.erase(rest, waiters_.end());
  if (listener_) return listener_->notify(Status::kSuccess);
  const uint32_t late = served ? armsAhead_ : std::max(armsAhead_, 1u);
  if (late != 0) {
    keptSolicited_ = (kept_ != 0 && keptSolicited_) || solicited || upgraded;
    kept_ = std::max(kept_, late);
    sinceKept_ = 0;
  }
}

void Cq::solicitedCame() {
  if (unannounced_ == 0) return;
  sinceSolicited_ = 0;
  if (armed_ != Arm::kNone && pending() > 0) fire(true);
}

void Cq::addWaiter(uint32_t type, std::shared_ptr<NotifySink> sink) {
  if (dead) {
    sink->notify(Status::kBufferOverflow);
    return;
  }
  // An event whose entries the consumer has since taken is not delivered.
  if (untaken() <= sinceKept_) kept_ = 0;
  if (kept_ != 0 && (type == kCqNotifyAny || (type == kCqNotifySolicited && keptSolicited_))) {
    kept_--;
    meetArm(type);
    sink->notify(Status::kSuccess);
    return;
  }
  waiters_.push_back({type, std::move(sink)});
  if (type == kCqNotifyErrors) return;
  if (armsAhead_ == 0) return saturatingIncrement(waitersAhead_);
  // The waiter's arm came first. An event that went to other waiters, or whose entries were taken, may have used up
  // that arm. A later arm (a batch) need not match the event for which the waiter waits.
  const bool used = usedAhead_ != 0, solicitedOnly = type == kCqNotifySolicited;
  meetArm(type);
  if (used || solicitedOnly || (armed_ != Arm::kAny && batchLeft_ == 0)) arrange(solicitedOnly);
}

bool Cq::removeWaiter(const NotifySink* sink) {
  auto it = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.sink.get() == sink; });
  if (it == waiters_.end()) return false;
  waiters_.erase(it);
  return true;
}

void Cq::listen(std::shared_ptr<NotifySink> sink) {
  listener_ = std::move(sink);
  const bool news = kept_ != 0 && untaken() > sinceKept_;
  kept_ = armsAhead_ = usedAhead_ = solicitedAhead_ = waitersAhead_ = 0;
  if (news) listener_->notify(Status::kSuccess);
}

void Cq::notifyAll(Status status) {
  std::vector<Waiter> all;
  all.swap(waiters_);
  for (Waiter& w : all) w.sink->notify(status);
}

void Cq::die() {
  dead = true;
  armed_ = Arm::kNone;
  batchLeft_ = 0;
  kept_ = 0;
  storeWord(words_ + kCqState, 1);
  notifyAll(Status::kBufferOverflow);
}

}  // namespace nd
