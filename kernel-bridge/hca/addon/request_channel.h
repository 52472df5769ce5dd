// The channel between a user isolate and its soft kernel. It is a table of request slots and does not use N-API.
//
// One thread submits, waits and releases (the user side), and one thread takes requests (the server side). Any thread
// completes them: the kernel's JavaScript, or the HCA for an event of a completion queue. The first completer of a
// (slot, serial) wins; later ones get false. All bytes are copied in both directions.
//
// A slot's ticket holds its serial and its phase in one word, so that a late completion can never hit the slot's next
// request. `state(slot)` repeats the phase as one word that JavaScript reads without a call.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "platform/unique_fd.h"
#include "schema/numbers.h"

namespace nd {
class HcaContext;
}

namespace nd::door {

// Statuses that the channel itself returns.
constexpr uint32_t kStatusPending = static_cast<uint32_t>(Status::kPending);
constexpr uint32_t kStatusInvalidHandle = static_cast<uint32_t>(Status::kInvalidHandle);
constexpr uint32_t kStatusInsufficientResources = static_cast<uint32_t>(Status::kInsufficientResources);
constexpr uint32_t kStatusDeviceRemoved = static_cast<uint32_t>(Status::kDeviceRemoved);
constexpr uint32_t kStatusCancelled = static_cast<uint32_t>(Status::kCancelled);

// The slot of a request that needs no reply (everything closed: kMajorClose with file 0).
constexpr uint32_t kNoSlot = 0xFFFFFFFF;

// Maximum input of one request in bytes. A buffered IOCTL copies it, and fails with kStatusInsufficientResources if it
// is longer.
constexpr size_t kMaxInput = 16u << 20;

// Wakes a thread's event loop. Called without the channel's lock, so that the woken thread finds it free.
class Wake {
 public:
  virtual ~Wake() = default;
  virtual void wake() = 0;
};

// Accepts requests for events on the user's thread, without the kernel's. Called with a lock of the channel that
// completions do not take.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Completes the slot when the event comes; `type` is that of the request. Returns false if the request must be sent
  // to the kernel.
  virtual bool wait(uint32_t type, uint32_t slot, uint32_t serial) = 0;
  virtual void cancel(uint32_t slot, uint32_t status) = 0;  // completes requests that still wait with `status`
  virtual void endAll(uint32_t status) = 0;
};

struct Request {
  uint32_t slot = kNoSlot;
  uint32_t serial = 0;
  uint32_t major = 0;
  uint32_t fileId = 0;
  uint32_t code = 0;
  uint32_t outputLength = 0;
  std::vector<uint8_t> input;
};

class Channel final : public std::enable_shared_from_this<Channel> {
 public:
  // Creates a channel of `slots` slots with a process-wide id(). `wake` (may be null) is called when overlapped
  // requests have completed. Overlapped IOCTLs with the code `eventCode` wait for an event of the HCA; 0 means that
  // none do.
  static std::shared_ptr<Channel> create(uint32_t slots, std::shared_ptr<Wake> wake, uint32_t eventCode = 0);
  static std::shared_ptr<Channel> find(uint32_t id);  // null: no such channel
  explicit Channel(uint32_t slots);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  uint32_t id() const { return id_; }
  uint32_t slotCount() const { return slotCount_; }
  // One word for each slot, followed by the cache epoch; when it changes, the user side's caches are invalid.
  std::atomic<int32_t>* states() { return states_.get(); }
  void newCacheEpoch() { states_[slotCount_].fetch_add(1); }

  // ── User side, one thread ──────────────────────────────────────────────────────────────────────────────
  // Returns the slot, or -1 if none is free. The last few slots are reserved for blocking requests, so that a program
  // whose overlapped requests fill the table can still cancel and close. If the channel has ended, the slot is done
  // immediately, with kStatusDeviceRemoved.
  int32_t submit(uint32_t major, uint32_t fileId, uint32_t code, const uint8_t* input, size_t inputLength,
                 uint32_t outputLength, bool overlapped);
  // Blocks until the slot is done or free. A negative timeout means no limit. Returns false after the timeout.
  bool wait(uint32_t slot, int64_t timeoutMs);
  bool settled(uint32_t slot) const;  // done or free
  // An alternative to wait(): from now until noWake(), completion of the slot raises `event`. Returns false if it is
  // already done or free.
  bool wakeBy(uint32_t slot, Descriptor event);
  void noWake();
  uint32_t status(uint32_t slot) const;       // kStatusPending until done, kStatusInvalidHandle if free
  uint64_t information(uint32_t slot) const;  // 0 until done
  // Returns the output, which is valid until release(). It is no longer than requested, nor than its information states
  // (for kMajorCreate the information is not a length).
  const uint8_t* output(uint32_t slot, size_t* length) const;
  void cancel(uint32_t slot);  // at most one cancel request per use of the slot
  void release(uint32_t slot);
  // Delivers completed overlapped requests: calls `deliver(slot)` for each slot that is still done and not released
  // when it is reached.
  template <typename Deliver>
  void drainCompletions(Deliver deliver);
  // Returns the oldest completed request, which then counts as delivered, or -1 if there is none.
  int32_t nextCompletion();
  // Returns the number of overlapped requests that are neither delivered nor released.
  uint32_t undelivered() const { return undelivered_; }
  // Sets whether an undelivered request keeps the user's loop alive. Each does until hold(slot, false).
  bool holdsLoop() const { return undelivered_ > background_; }
  void hold(uint32_t slot, bool holds);
  // Returns the number of undelivered requests that wait for events.
  uint32_t undeliveredEvents() const { return undeliveredEvents_; }
  bool isEvent(uint32_t slot) const { return slots_[slot].event; }
  bool anyReady() const;  // whether drainCompletions() has something to deliver
  // Completions need not wake the user, because drainCompletions() will be called anyway. That call re-arms the
  // wake-up.
  void deliveryFollows();
  void deliveryByWake();
  // Whether the user's thread watches the HCA while its requests wait for events.
  std::atomic<bool> watches{false};
  // The HCA of the user's isolate, for the server; set before other threads know the id.
  std::weak_ptr<HcaContext> context;
  // Called when the user side has gone. The server is notified by a close of file 0.
  void closeUser();

  // ── Server side, one thread ────────────────────────────────────────────────────────────────────────────
  // Returns false if the channel already has a server, or has ended. `wake` is called when a request arrives after
  // take() has found none.
  bool serve(const std::shared_ptr<Wake>& wake);
  bool take(Request* out);
  // Routes later requests for the same event as the pending one in `slot` to the source.
  void bindEvent(uint32_t slot, uint32_t serial, std::shared_ptr<EventSource> source);
  // Routes them to the kernel again; waiting requests complete with `status`.
  void unbindEvent(EventSource& source, uint32_t status);

  // ── Any thread ─────────────────────────────────────────────────────────────────────────────────────────
  // Returns whether this call completed the request. At most the requested number of output bytes is stored.
  bool complete(uint32_t slot, uint32_t serial, uint32_t status, uint64_t information, const uint8_t* output,
                size_t outputLength);
  // Ends the channel. Pending and later requests complete with kStatusDeviceRemoved. The first reason is kept.
  void end(const std::string& reason);
  bool ended() const;
  std::string reason() const;

 private:
  enum Phase : uint32_t { kFree = 0, kPending = 1, kCompleting = 2, kDone = 3 };

  // File id and event Id.
  using EventKey = std::pair<uint32_t, uint64_t>;

  struct Slot {
    std::atomic<uint64_t> ticket{0};  // serial << 32 | phase
    // Written by the user before kPending, read by the completer.
    uint32_t major = 0;
    uint32_t outputLength = 0;
    bool overlapped = false;
    // Written by the completer before kDone, read by the user.
    uint32_t status = 0;
    uint64_t information = 0;
    std::vector<uint8_t> output;
    // Under eventMutex_.
    EventKey eventKey{};
    uint32_t eventSerial = 0;             // serial of the request for eventKey
    std::shared_ptr<EventSource> source;  // owns the request
    // Under mutex_.
    bool abandoned = false;  // released while pending
    bool queued = false;     // is in ready_
    bool cancelRequested = false;
    // The user's thread only.
    bool counted = false;     // is in undelivered_
    bool background = false;  // does not keep the loop alive; also counted in background_
    bool event = false;       // waits for an event; also counted in undeliveredEvents_
  };

  static uint64_t pack(uint32_t serial, Phase phase) { return static_cast<uint64_t>(serial) << 32 | phase; }
  static uint32_t serialOf(uint64_t ticket) { return static_cast<uint32_t>(ticket >> 32); }
  static Phase phaseOf(uint64_t ticket) { return static_cast<Phase>(ticket & 0xFFFFFFFF); }
  Phase phase(uint32_t slot) const { return phaseOf(slots_[slot].ticket.load(std::memory_order_acquire)); }

  void count(Slot& slot, bool in);
  bool submitEvent(uint32_t slot, uint32_t serial, uint32_t fileId, const std::vector<uint8_t>& input);
  // Called with the lock held. They return what to wake once the lock is released, or null.
  std::shared_ptr<Wake> push(Request&& request);
  std::shared_ptr<Wake> settle(uint32_t slot, uint32_t serial);  // completed and not abandoned
  void free(uint32_t slot);                                      // lock held
  bool popReady(uint32_t* slot);
  bool beginDelivery(uint32_t slot);

  const uint32_t slotCount_;
  uint32_t id_ = 0;
  uint32_t reserve_ = 0;  // slots that overlapped requests must leave free
  std::unique_ptr<std::atomic<int32_t>[]> states_;
  std::unique_ptr<Slot[]> slots_;
  uint32_t undelivered_ = 0, undeliveredEvents_ = 0, background_ = 0, eventCode_ = 0;

  std::mutex eventMutex_;  // taken before mutex_ and the engine's lock
  std::map<EventKey, std::shared_ptr<EventSource>> sources_;

  // The user thread is in wait() or about to enter it: completers wake it by the slot's state word.
  std::atomic<bool> waiting_{false};

  mutable std::mutex mutex_;
  std::vector<uint32_t> freeSlots_;
  std::deque<uint32_t> ready_;
  std::deque<Request> inbox_;
  std::shared_ptr<Wake> userWake_;
  std::shared_ptr<Wake> serverWake_;
  Descriptor wakeEvent_ = kNoDescriptor;  // while the user thread is between wakeBy() and noWake()
  bool userArmed_ = true;                 // the user's loop must be woken for the next completion
  bool armed_ = false;                    // the server's loop must be woken for the next request
  bool served_ = false;
  bool ended_ = false;
  std::string reason_;
};

template <typename Deliver>
void Channel::drainCompletions(Deliver deliver) {
  // Bounded by the current number, since completions caused by deliver() itself wake the loop again.
  size_t budget;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    userArmed_ = true;
    budget = ready_.size();
  }
  uint32_t slot;
  while (budget-- > 0 && popReady(&slot)) {
    if (beginDelivery(slot)) deliver(slot);
  }
}

}  // namespace nd::door
