// Completion queues: the ring of CQEs and the rules of notification (WinVerbs Notify, ND SPI v2
// IND2CompletionQueue::Notify).
#pragma once
#include "base/ring_words.h"
#include "objects/memory.h"
#include "progress/poll_hint.h"

namespace nd {

struct Completion {
  uint32_t token = 0, wqe = 0, opcode = 0, status = 0, length = 0, flags = 0, immediate = 0, sourceQpn = 0, vendor = 0;
  uint32_t pkeyIndex = 0;
};

// Counts of entries that saturate instead of wrapping: "how long ago", in entries.
inline void saturatingIncrement(uint32_t& n) {
  if (n != UINT32_MAX) n++;
}

struct Cq {
  // Takes over a ring (from creation or resize). The counters in its header are set.
  void attach(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount, uint32_t producerNow,
              uint32_t consumerNow);
  // False: there is no room, the CQ is dead from now on. In the header, so that a completion goes from where it is made
  // into its words: as a structure in between the compiler clears it by a string instruction first, slower than all of
  // this.
  bool write(const Completion& completion);
  // Moves the entries not yet taken to another ring. kBufferOverflow: they do not fit.
  Status resize(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount);
  // One event for the next entry, or the next solicited one.
  void arm(bool solicitedOnly);
  // One event when `count` entries, those included that are there and not announced, have been written. It comes
  // earlier when arm() brings one about.
  void armBatch(uint32_t count);
  bool fits(uint32_t count) const { return count <= entries_; }
  void addWaiter(uint32_t type, std::shared_ptr<NotifySink> sink);
  bool removeWaiter(const NotifySink* sink);
  // From now on every event goes to the listener, and none is kept; an event that was kept goes there now.
  void listen(std::shared_ptr<NotifySink> sink);
  // For an HCA that learns of an event before it knows the entries: whether any next entry is an event, or only a
  // solicited one.
  bool wantsAny() const { return armed_ == Arm::kAny || batchLeft_ != 0; }
  // And that a solicited entry is among those that were written last.
  void solicitedCame();
  void notifyAll(Status status);  // every waiter, whatever its type
  void die();
  // Entries that the consumer says it has taken, modulo 2^32.
  uint32_t taken() const { return loadWord(words_ + abi::kCqConsumer); }

  KernelId kernel = 0;
  Handle handle = 0;
  uint32_t users = 0;
  bool dead = false;
  uint64_t* events = nullptr;  // counter
  PollHint pollHint;

 private:
  enum class Arm : uint8_t { kNone, kSolicited, kAny };
  struct Waiter {
    uint32_t type = 0;
    std::shared_ptr<NotifySink> sink;
  };
  uint32_t untaken() const;  // entries that the consumer has not taken
  uint32_t pending() const;  // of those, the ones that no event has announced
  void fire(bool solicited);
  void askFor(bool solicitedOnly);
  void countArm(bool solicitedOnly);
  void meetArm(uint32_t type);  // a waiter of this type has come to an arm that was ahead

  std::shared_ptr<Ring> ring_;
  uint32_t* words_ = nullptr;
  uint32_t entries_ = 0, producer_ = 0;
  Arm armed_ = Arm::kNone;
  uint32_t batchLeft_ = 0;  // entries until the event of armBatch(); 0: not armed
  // A notification is one arm and one waiter, which come by different ways and in either order: arms whose waiters
  // are on their way, and waiters whose arms are.
  uint32_t armsAhead_ = 0, waitersAhead_ = 0;
  uint32_t usedAhead_ = 0;                // of the arms ahead, the oldest: an event has used them up
  uint32_t solicitedAhead_ = 0;           // of the arms ahead, those for solicited entries
  uint32_t unannounced_ = 0;              // entries written since the last event
  uint32_t sinceSolicited_ = UINT32_MAX;  // entries written after the last solicited one
  // An event for waiters who were not there yet: for how many of them.
  uint32_t kept_ = 0;
  bool keptSolicited_ = false;
  uint32_t sinceKept_ = 0;
  std::vector<Waiter> waiters_;
  std::shared_ptr<NotifySink> listener_;
};

inline uint32_t Cq::untaken() const {
  // A consumer counter that is ahead of the producer is nonsense; it reads as a full queue.
  const uint32_t n = producer_ - taken();
  return n <= entries_ ? n : entries_;
}

inline bool Cq::write(const Completion& c) {
  if (dead) return false;
  if (untaken() >= entries_) {
    die();
    return false;
  }
  uint32_t* cqe = words_ + abi::kCqHeaderBytes / 4 + size_t(producer_ & (entries_ - 1)) * (abi::kCqeBytes / 4);
  cqe[abi::kCqeToken] = c.token;
  cqe[abi::kCqeWqe] = c.wqe;
  cqe[abi::kCqeOpcode] = c.opcode;
  cqe[abi::kCqeStatus] = c.status;
  cqe[abi::kCqeLength] = c.length;
  cqe[abi::kCqeFlags] = c.flags;
  cqe[abi::kCqeImmediate] = c.immediate;
  cqe[abi::kCqeSourceQpn] = c.sourceQpn;
  cqe[abi::kCqeVendor] = c.vendor;
  cqe[abi::kCqePkeyIndex] = c.pkeyIndex;
  storeWord(words_ + abi::kCqProducer, ++producer_);

  const bool solicited = (c.flags & abi::kCqeFlagSolicited) != 0 || c.status != abi::kWcSuccess;
  saturatingIncrement(unannounced_);
  saturatingIncrement(sinceKept_);
  if (solicited) {
    sinceSolicited_ = 0;
  } else {
    saturatingIncrement(sinceSolicited_);
  }
  const bool batchDone = batchLeft_ != 0 && --batchLeft_ == 0;
  if (batchDone || armed_ == Arm::kAny || (armed_ == Arm::kSolicited && solicited))
    fire(sinceSolicited_ < pending());  // a batch may have one before its last
  return true;
}

}  // namespace nd
