#include "loop_wait.h"

#include <chrono>

#include "loop_poll.h"
#include "platform/event.h"
#include "platform/readiness.h"

namespace nd::js {

// ── Blocked ─────────────────────────────────────────────────────────────────────────────────────────────────

BlockedWait::BlockedWait(ProgressEngine& engine)
    : fd_(makeEvent()),
      waiting_(
          engine, [](void* self) { raiseEvent(static_cast<BlockedWait*>(self)->fd_.get()); }, this) {}

bool BlockedWait::wait(door::Channel& channel, uint32_t slot, int64_t timeoutMs) {
  using std::chrono::steady_clock, std::chrono::nanoseconds;
  const auto end = steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  const auto settled = [&] { return channel.settled(slot); };
  bool inTime = true;
  while (inTime && !settled()) {
    const WaitingThread::Entry entry = waiting_.enter(settled, timeoutMs != 0);
    if (entry == WaitingThread::Entry::kDone || !channel.wakeBy(slot, fd_.get())) break;
    const auto left = [&] { return std::max<int64_t>(0, nanoseconds(end - steady_clock::now()).count()); };
    const Descriptor waited[] = {fd_.get(), waiting_.descriptor()};
    const uint32_t readable = waitReadable(waited, entry == WaitingThread::Entry::kSleep ? 2 : 1,
                                           timeoutMs < 0 ? UINT64_MAX : static_cast<uint64_t>(left()));
    inTime = readable != 0 || timeoutMs < 0 || left() != 0;
    channel.noWake();
    if ((readable & 1) != 0) clearEvent(fd_.get());
  }
  waiting_.leave();
  return settled();
}

// ── An event loop ───────────────────────────────────────────────────────────────────────────────────────────

// The handles exist longer than the LoopWait, until the loop has closed them.
struct LoopWait::Handles {
  uv_prepare_t prepare;
  uv_check_t check;
  uv_idle_t idle;
  LoopPoll poll;
  LoopWait* owner = nullptr;
  std::shared_ptr<Teardown> teardown;
  uint32_t open = 0;

  template <typename Handle>
  static uv_handle_t* base(Handle& handle) {
    return reinterpret_cast<uv_handle_t*>(&handle);
  }
  void add(uv_handle_t* h) {
    h->data = this;
    uv_unref(h);
    open++;
    teardown->openHandles++;
  }
  template <typename Handle>
  static LoopWait* ownerOf(Handle* handle) {
    return static_cast<Handles*>(handle->data)->owner;
  }
  static void close(uv_handle_t* handle) {
    uv_close(handle, [](uv_handle_t* h) {
      auto* all = static_cast<Handles*>(h->data);
      --all->teardown->openHandles;
      all->teardown->finishIfIdle();
      if (--all->open == 0) delete all;
    });
  }
};

std::unique_ptr<LoopWait> LoopWait::open(EnvData& data, ProgressEngine& engine, std::shared_ptr<door::Channel> channel,
                                         std::shared_ptr<LoopSignal> signal, std::function<void()> deliver) {
  uv_loop_t* loop = nullptr;
  if (data.teardown()->ending || napi_get_uv_event_loop(data.env(), &loop) != napi_ok) return nullptr;
  auto handles = std::make_unique<Handles>();
  handles->teardown = data.teardown();
  if (!handles->poll.open(loop, engine.descriptor())) return nullptr;
  uv_prepare_init(loop, &handles->prepare);
  uv_check_init(loop, &handles->check);
  uv_idle_init(loop, &handles->idle);
  handles->add(handles->poll.handle());
  handles->add(Handles::base(handles->prepare));
  handles->add(Handles::base(handles->check));
  handles->add(Handles::base(handles->idle));
  std::unique_ptr<LoopWait> made(new LoopWait);
  handles->owner = made.get();
  made->handles_ = handles.release();
  made->channel_ = std::move(channel);
  made->signal_ = std::move(signal);
  made->deliver_ = std::move(deliver);
  made->waiting_ = std::make_unique<WaitingThread>(
      engine, [](void* self) { static_cast<LoopSignal*>(self)->wake(); }, made->signal_.get());
  return made;
}

LoopWait::~LoopWait() {
  waiting_.reset();
  handles_->owner = nullptr;
  Handles::close(handles_->poll.handle());
  Handles::close(Handles::base(handles_->prepare));
  Handles::close(Handles::base(handles_->check));
  Handles::close(Handles::base(handles_->idle));
}

void LoopWait::start() {
  if (started_) return;
  started_ = true;
  uv_prepare_start(&handles_->prepare, [](uv_prepare_t* h) {
    if (LoopWait* self = Handles::ownerOf(h)) self->beforeSleep();
  });
  uv_check_start(&handles_->check, [](uv_check_t* h) {
    if (LoopWait* self = Handles::ownerOf(h)) self->afterSleep();
  });
}

void LoopWait::stop() {
  started_ = false;
  uv_prepare_stop(&handles_->prepare);
  uv_check_stop(&handles_->check);
  poll(false);
}

void LoopWait::beforeSleep() {
  if (channel_->undeliveredEvents() == 0) return stop();
  const auto ready = [this] { return channel_->anyReady(); };
  const bool sleeps = uv_backend_timeout(handles_->prepare.loop) != 0;
  channel_->deliveryFollows();
  WaitingThread::Entry entry = waiting_->enter(ready, sleeps);
  if (entry == WaitingThread::Entry::kDone) {
    // Delivers without delay, but only after the loop has polled its other descriptors once.
    Handles* const handles = handles_;
    waiting_->leave();
    deliver();
    if (handles->owner == nullptr) return;
    if (channel_->undeliveredEvents() == 0) return stop();
    channel_->deliveryFollows();
    entry = waiting_->enter(ready, sleeps);
  }
  carryOn(entry == WaitingThread::Entry::kDone);
  if (entry == WaitingThread::Entry::kDone) return waiting_->leave();
  channel_->deliveryByWake();
  poll(entry == WaitingThread::Entry::kSleep);
}

void LoopWait::afterSleep() {
  waiting_->leave();
  if (!carriesOn_) return;
  carryOn(false);
  deliver();
}

void LoopWait::deliver() {
  const std::function<void()> callback = deliver_;  // a copy, because the call may end this
  callback();
}

void LoopWait::takeIn() {
  channel_->deliveryFollows();
  waiting_->enter([this] { return channel_->anyReady(); });
  waiting_->leave();
  deliver();
}

void LoopWait::poll(bool on) {
  if (on == polls_) return;
  polls_ = on;
  if (!on) {
    handles_->poll.stop();
    return;
  }
  handles_->poll.start([](void* data) {
    if (LoopWait* self = static_cast<Handles*>(data)->owner) self->takeIn();
  });
}

// Makes the loop poll its descriptors without sleeping, and then deliver.
void LoopWait::carryOn(bool on) {
  if (on == carriesOn_) return;
  carriesOn_ = on;
  if (on) uv_idle_start(&handles_->idle, [](uv_idle_t*) {});
  else uv_idle_stop(&handles_->idle);
}

}  // namespace nd::js
