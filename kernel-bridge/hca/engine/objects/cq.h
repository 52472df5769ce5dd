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

// How many entries ago something happened. The counters saturate instead of wrapping.
inline void saturatingIncrement(uint32_t& n) {
  if (n != UINT32_MAX) n++;
}

struct Cq {
  // Adopts the ring of a new or resized queue, and sets the counters in its header.
  void attach(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount, uint32_t producerNow,
              uint32_t consumerNow);
  // Returns false if the queue is full and has therefore failed. Defined in the header so that a completion is written
  // directly to the ring. The compiler would clear a temporary structure with a string instruction, which is slower
  // than everything else here.
  bool write(const Completion& completion);
  // Moves the entries not yet taken to another ring. Fails with kBufferOverflow if they do not fit.
  Status resize(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount);
  // Requests one event for the next entry, or the next solicited one.
  void arm(bool solicitedOnly);
  // Requests one event once `count` entries have been written, including those present and not yet announced. It comes
  // earlier if arm() causes one.
  void armBatch(uint32_t count);
  bool fits(uint32_t count) const { return count <= entries_; }
  void addWaiter(uint32_t type, std::shared_ptr<NotifySink> sink);
  bool removeWaiter(const NotifySink* sink);
  // From this call on, every event goes to the listener and none is kept. A kept event is delivered immediately.
  void listen(std::shared_ptr<NotifySink> sink);
  // Returns whether an event is due for any next entry, or only for a solicited one. For an HCA that learns of an event
  // before it knows the entries.
  bool wantsAny() const { return armed_ == Arm::kAny || batchLeft_ != 0; }
  // One of the entries written last is solicited.
  void solicitedCame();
  void notifyAll(Status status);  // all waiters, of every type
  void die();
  // Returns the number of entries that the consumer reports as taken, modulo 2^32.
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
  void arrange(bool solicitedOnly);
  void countArm(bool solicitedOnly);
  void meetArm(uint32_t type);  // a waiter of this type has met an earlier arm

  std::shared_ptr<Ring> ring_;
  uint32_t* words_ = nullptr;
  uint32_t entries_ = 0, producer_ = 0;
  Arm armed_ = Arm::kNone;
  uint32_t batchLeft_ = 0;  // entries left until the event of armBatch(); 0: not armed
  // A notification needs one arm and one waiter, which arrive independently and in either order. These count the arms
  // whose waiters are missing, and the waiters whose arms are.
  uint32_t armsAhead_ = 0, waitersAhead_ = 0;
  uint32_t usedAhead_ = 0;                // number of the oldest arms ahead that an event has used up
  uint32_t solicitedAhead_ = 0;           // number of arms ahead for solicited entries
  uint32_t unannounced_ = 0;              // entries written since the last event
  uint32_t sinceSolicited_ = UINT32_MAX;  // entries written after the last solicited one
  // Number of waiters, not arrived yet, for which an event is kept.
  uint32_t kept_ = 0;
  bool keptSolicited_ = false;
  uint32_t sinceKept_ = 0;
  std::vector<Waiter> waiters_;
  std::shared_ptr<NotifySink> listener_;
};

inline uint32_t Cq::untaken() const {
  // A consumer counter ahead of the producer is invalid, and is treated as a full queue.
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
    fire(sinceSolicited_ < pending());  // a batch may contain a solicited entry before its last
  return true;
}

}  // namespace nd
