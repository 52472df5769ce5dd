#include "request_channel.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "platform/event.h"
#include "platform/wait_word.h"

namespace nd::door {

namespace {

// The channels by id. They are local to a function and leaked, because Workers may still look up a channel while the
// process exits.
struct Registry {
  std::mutex mutex;
  std::unordered_map<uint32_t, std::weak_ptr<Channel>> channels;
  uint32_t nextId = 1;
};

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

constexpr size_t kKeptCapacity = 4096;  // larger output buffers are freed with their slot

}  // namespace

std::shared_ptr<Channel> Channel::create(uint32_t slots, std::shared_ptr<Wake> wake, uint32_t eventCode) {
  auto channel = std::make_shared<Channel>(slots);
  channel->eventCode_ = eventCode;
  channel->userWake_ = std::move(wake);
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  channel->id_ = all.nextId++;
  all.channels.emplace(channel->id_, channel);
  return channel;
}

std::shared_ptr<Channel> Channel::find(uint32_t id) {
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto it = all.channels.find(id);
  return it == all.channels.end() ? nullptr : it->second.lock();
}

Channel::Channel(uint32_t slots)
    : slotCount_(slots), states_(new std::atomic<int32_t>[slots + 1]), slots_(new Slot[slots]) {
  reserve_ = std::min<uint32_t>(64, slots / 8);
  states_[slots].store(0, std::memory_order_relaxed);
  freeSlots_.reserve(slots);
  for (uint32_t i = 0; i < slots; ++i) {
    states_[i].store(kSlotFree, std::memory_order_relaxed);
    freeSlots_.push_back(slots - 1 - i);
  }
}

Channel::~Channel() {
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.channels.erase(id_);
}

// ── User side ───────────────────────────────────────────────────────────────────────────────────────────────

int32_t Channel::submit(uint32_t major, uint32_t fileId, uint32_t code, const uint8_t* input, size_t inputLength,
                        uint32_t outputLength, bool overlapped) {
  Request request;
  request.major = major;
  request.fileId = fileId;
  request.code = code;
  request.outputLength = outputLength;
  const bool tooLarge = inputLength > kMaxInput;
  if (inputLength > 0 && !tooLarge) request.input.assign(input, input + inputLength);

  uint32_t slot, serial;
  bool refused;
  std::shared_ptr<Wake> wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (freeSlots_.size() <= (overlapped ? reserve_ : 0)) return -1;
    slot = freeSlots_.back();
    freeSlots_.pop_back();
    Slot& s = slots_[slot];
    s.major = major;
    s.outputLength = outputLength;
    s.overlapped = overlapped;
    s.abandoned = false;
    s.cancelRequested = false;
    s.event = overlapped && major == kMajorDeviceControl && code == eventCode_ && code != 0;
    if (overlapped) count(s, true);
    serial = serialOf(s.ticket.load(std::memory_order_relaxed)) + 1;
    states_[slot].store(kSlotPending, std::memory_order_release);
    s.ticket.store(pack(serial, kPending), std::memory_order_release);
    refused = ended_ || tooLarge;
    request.slot = slot;
    request.serial = serial;
    if (!refused && !s.event) wake = push(std::move(request));
  }
  // The request for an event has not been moved from. NOLINTNEXTLINE(bugprone-use-after-move)
  if (!refused && slots_[slot].event && !submitEvent(slot, serial, fileId, request.input)) {
    std::lock_guard<std::mutex> lock(mutex_);
    refused = ended_;
    if (!refused) wake = push(std::move(request));
  }
  if (wake) wake->wake();
  if (refused) {
    complete(slot, serial, tooLarge ? kStatusInsufficientResources : kStatusDeviceRemoved, 0, nullptr, 0);
  }
  return static_cast<int32_t>(slot);
}

bool Channel::wait(uint32_t slot, int64_t timeoutMs) {
  if (states_[slot].load(std::memory_order_acquire) != kSlotPending) return true;
  waiting_.store(true);  // before the state is checked again; completers set the state before they check this
  const bool result = waitWhile(states_[slot], kSlotPending, timeoutMs < 0 ? -1 : timeoutMs * 1000);
  waiting_.store(false, std::memory_order_relaxed);
  return result;
}

bool Channel::settled(uint32_t slot) const { return states_[slot].load(std::memory_order_acquire) != kSlotPending; }

bool Channel::wakeBy(uint32_t slot, Descriptor event) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (settled(slot)) return false;
  wakeEvent_ = event;
  return true;
}

void Channel::noWake() {
  std::lock_guard<std::mutex> lock(mutex_);
  wakeEvent_ = kNoDescriptor;
}

bool Channel::anyReady() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !ready_.empty();
}

void Channel::deliveryFollows() {
  std::lock_guard<std::mutex> lock(mutex_);
  userArmed_ = false;
}

void Channel::deliveryByWake() {
  std::shared_ptr<Wake> wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    userArmed_ = ready_.empty();
    if (!userArmed_) wake = userWake_;
  }
  if (wake) wake->wake();
}

// Counts requests whose completions have not been delivered.
void Channel::count(Slot& slot, bool in) {
  slot.counted = in;
  undelivered_ += in ? 1 : -1;
  if (slot.event) undeliveredEvents_ += in ? 1 : -1;
  if (std::exchange(slot.background, false)) background_--;
}

void Channel::hold(uint32_t slot, bool holds) {
  Slot& s = slots_[slot];
  if (!s.counted || s.background != holds) return;
  s.background = !holds;
  background_ += holds ? -1 : 1;
}

uint32_t Channel::status(uint32_t slot) const {
  switch (phase(slot)) {
    case kDone: return slots_[slot].status;
    case kFree: return kStatusInvalidHandle;
    default: return kStatusPending;
  }
}

uint64_t Channel::information(uint32_t slot) const { return phase(slot) == kDone ? slots_[slot].information : 0; }

const uint8_t* Channel::output(uint32_t slot, size_t* length) const {
  *length = 0;
  if (phase(slot) != kDone) return nullptr;
  const Slot& s = slots_[slot];
  *length = s.major == kMajorCreate ? s.output.size()
                                    : static_cast<size_t>(std::min<uint64_t>(s.information, s.output.size()));
  return s.output.data();
}

// Returns false if the request must be sent to the kernel.
bool Channel::submitEvent(uint32_t slot, uint32_t serial, uint32_t fileId, const std::vector<uint8_t>& input) {
  std::lock_guard<std::mutex> lock(eventMutex_);
  Slot& s = slots_[slot];
  s.source = nullptr;
  if (input.size() != kEventBytes) return false;
  uint64_t id;
  uint32_t type;
  std::memcpy(&id, input.data() + kEventIdAt, sizeof id);
  std::memcpy(&type, input.data() + kEventTypeAt, sizeof type);
  s.eventKey = {fileId, id};
  s.eventSerial = serial;
  const auto it = sources_.find(s.eventKey);
  if (it == sources_.end() || !it->second->wait(type, slot, serial)) return false;
  s.source = it->second;
  return true;
}

void Channel::bindEvent(uint32_t slot, uint32_t serial, std::shared_ptr<EventSource> source) {
  std::lock_guard<std::mutex> lock(eventMutex_);
  if (slot < slotCount_ && slots_[slot].eventSerial == serial) sources_[slots_[slot].eventKey] = std::move(source);
}

void Channel::unbindEvent(EventSource& source, uint32_t status) {
  std::lock_guard<std::mutex> lock(eventMutex_);
  for (auto it = sources_.begin(); it != sources_.end();) it = it->second.get() == &source ? sources_.erase(it) : ++it;
  source.endAll(status);
}

void Channel::cancel(uint32_t slot) {
  if (slots_[slot].event) {
    std::lock_guard<std::mutex> lock(eventMutex_);
    if (slots_[slot].source != nullptr) return slots_[slot].source->cancel(slot, kStatusCancelled);
  }
  std::shared_ptr<Wake> wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Slot& s = slots_[slot];
    const uint64_t ticket = s.ticket.load(std::memory_order_acquire);
    if (phaseOf(ticket) != kPending || s.cancelRequested || ended_) return;
    s.cancelRequested = true;
    Request request;
    request.major = kMajorCancel;
    request.slot = slot;
    request.serial = serialOf(ticket);
    wake = push(std::move(request));
  }
  if (wake) wake->wake();
}

void Channel::release(uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.counted) count(s, false);
  std::lock_guard<std::mutex> lock(mutex_);
  switch (phase(slot)) {
    case kDone: free(slot); break;
    case kPending:
    case kCompleting: s.abandoned = true; break;
    case kFree: break;
  }
}

bool Channel::popReady(uint32_t* slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ready_.empty()) return false;
  *slot = ready_.front();
  ready_.pop_front();
  slots_[*slot].queued = false;
  return true;
}

// Returns false if the slot no longer waits for delivery.
bool Channel::beginDelivery(uint32_t slot) {
  Slot& s = slots_[slot];
  if (!s.counted || phase(slot) != kDone) return false;
  count(s, false);
  return true;
}

int32_t Channel::nextCompletion() {
  uint32_t slot;
  while (popReady(&slot)) {
    if (beginDelivery(slot)) return static_cast<int32_t>(slot);
  }
  return -1;
}

void Channel::closeUser() {
  end("the user side of the channel was closed");
  std::lock_guard<std::mutex> lock(mutex_);
  userWake_ = nullptr;
}

// ── Server side ─────────────────────────────────────────────────────────────────────────────────────────────

bool Channel::serve(const std::shared_ptr<Wake>& wake) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (served_ || ended_) return false;
    served_ = true;
    serverWake_ = wake;
    armed_ = inbox_.empty();
    if (armed_) return true;
  }
  wake->wake();
  return true;
}

bool Channel::take(Request* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (inbox_.empty()) {
    armed_ = true;
    return false;
  }
  *out = std::move(inbox_.front());
  inbox_.pop_front();
  return true;
}

std::shared_ptr<Wake> Channel::push(Request&& request) {
  inbox_.push_back(std::move(request));
  if (!armed_ || serverWake_ == nullptr) return nullptr;
  armed_ = false;
  return serverWake_;
}

// ── Any thread ──────────────────────────────────────────────────────────────────────────────────────────────

bool Channel::complete(uint32_t slot, uint32_t serial, uint32_t status, uint64_t information, const uint8_t* output,
                       size_t outputLength) {
  if (slot >= slotCount_) return false;
  Slot& s = slots_[slot];
  uint64_t expected = pack(serial, kPending);
  if (!s.ticket.compare_exchange_strong(expected, pack(serial, kCompleting), std::memory_order_acq_rel)) {
    return false;
  }
  s.status = status;
  s.information = information;
  const size_t kept = std::min<size_t>(outputLength, s.outputLength);
  if (kept > 0) {
    s.output.assign(output, output + kept);
  } else {
    s.output.clear();
  }

  std::shared_ptr<Wake> wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (s.abandoned) {
      free(slot);
      return true;
    }
    wake = settle(slot, serial);
    if (wakeEvent_ != kNoDescriptor) raiseEvent(wakeEvent_);
  }
  if (waiting_.load()) wakeAll(states_[slot]);
  if (wake) wake->wake();
  return true;
}

std::shared_ptr<Wake> Channel::settle(uint32_t slot, uint32_t serial) {
  Slot& s = slots_[slot];
  s.ticket.store(pack(serial, kDone), std::memory_order_release);
  states_[slot].store(kSlotDone);
  if (!s.overlapped || s.queued) return nullptr;
  s.queued = true;
  ready_.push_back(slot);
  if (!userArmed_ || userWake_ == nullptr) return nullptr;
  userArmed_ = false;
  return userWake_;
}

void Channel::free(uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.output.capacity() > kKeptCapacity) {
    std::vector<uint8_t>().swap(s.output);
  } else {
    s.output.clear();
  }
  states_[slot].store(kSlotFree, std::memory_order_release);
  s.ticket.store(pack(serialOf(s.ticket.load(std::memory_order_relaxed)), kFree), std::memory_order_release);
  freeSlots_.push_back(slot);
}

void Channel::end(const std::string& reason) {
  std::shared_ptr<Wake> wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return;
    ended_ = true;
    newCacheEpoch();
    reason_ = reason;
    inbox_.clear();
    if (serverWake_) {
      // A server that still exists is notified that all files are closed, whichever side ended the channel.
      Request request;
      request.major = kMajorClose;
      wake = push(std::move(request));
    }
  }
  if (wake) wake->wake();
  // From now on submit() itself completes every new request.
  for (uint32_t slot = 0; slot < slotCount_; ++slot) {
    const uint64_t ticket = slots_[slot].ticket.load(std::memory_order_acquire);
    if (phaseOf(ticket) == kPending) {
      complete(slot, serialOf(ticket), kStatusDeviceRemoved, 0, nullptr, 0);
    }
  }
}

bool Channel::ended() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return ended_;
}

std::string Channel::reason() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

}  // namespace nd::door
