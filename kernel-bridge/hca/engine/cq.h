// Completion queues: the ring of CQEs and the rules of notification (WinVerbs Notify, ND SPI v2
// IND2CompletionQueue::Notify).
#pragma once
#include "memory.h"

namespace nd {

struct Completion {
  uint32_t token = 0, wqe = 0, opcode = 0, status = 0, length = 0, flags = 0, immediate = 0, sourceQpn = 0, vendor = 0;
};

// Counts of entries that saturate instead of wrapping: "how long ago", in entries.
inline void saturatingIncrement(uint32_t& n) {
  if (n != UINT32_MAX) n++;
}

struct Cq {
  // Takes over a ring (from creation or resize). The counters in its header are set.
  void attach(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount, uint32_t producerNow,
              uint32_t consumerNow);
  // False: there is no room, the CQ is dead from now on.
  bool write(const Completion& completion);
  // Moves the entries not yet taken to another ring. kBufferOverflow: they do not fit.
  Status resize(std::shared_ptr<Ring> memory, uint64_t address, uint32_t entryCount);
  void arm(bool solicitedOnly);
  void addWaiter(uint32_t type, std::shared_ptr<NotifySink> sink);
  bool removeWaiter(const NotifySink* sink);
  void notifyAll(Status status);  // every waiter, whatever its type
  void die();

  KernelId kernel = 0;
  Handle handle = 0;
  uint32_t users = 0;
  bool dead = false;
  uint64_t* events = nullptr;  // counter

 private:
  enum class Arm : uint8_t { kNone, kSolicited, kAny };
  struct Waiter {
    uint32_t type = 0;
    std::shared_ptr<NotifySink> sink;
  };
  uint32_t untaken() const;  // entries that the consumer has not taken
  void fire(bool solicited);

  std::shared_ptr<Ring> ring_;
  uint32_t* words_ = nullptr;
  uint32_t entries_ = 0, producer_ = 0;
  Arm armed_ = Arm::kNone;
  uint32_t unannounced_ = 0;               // entries written since the last event
  uint32_t sinceSolicited_ = UINT32_MAX;   // entries written after the last solicited one
  bool kept_ = false, keptSolicited_ = false;  // an event that found nobody waiting
  uint32_t sinceKept_ = 0;
  std::vector<Waiter> waiters_;
};

// Ring words are shared with threads that do not take the lock.
inline uint32_t loadWord(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline uint32_t peekWord(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline void storeWord(uint32_t* p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }

}  // namespace nd
