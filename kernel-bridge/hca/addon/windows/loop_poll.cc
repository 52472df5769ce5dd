#include "addon/loop_poll.h"

#include "platform/windows/descriptor_object.h"

namespace nd::js {

// On Windows libuv polls only sockets. A thread-pool thread of Windows therefore waits for the descriptor's signal and
// wakes the loop.
struct LoopPoll::Impl : uv_async_t {
  std::shared_ptr<Signal> signal;
  HANDLE raw = nullptr;   // of a descriptor that is a handle
  HANDLE wait = nullptr;  // null: no wait is pending
  void (*readable)(void* data) = nullptr;

  bool beginWait() {
    const auto onSignal = [](void* self, BOOLEAN) { uv_async_send(static_cast<Impl*>(self)); };
    return RegisterWaitForSingleObject(&wait, signal != nullptr ? signal->handle : raw, onSignal, this, INFINITE,
                                       WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD) != 0;
  }
  // After this call the thread-pool thread no longer uses this object.
  void endWait() {
    if (wait != nullptr) UnregisterWaitEx(std::exchange(wait, nullptr), INVALID_HANDLE_VALUE);
  }
};

LoopPoll::LoopPoll() : impl_(new Impl) {}
LoopPoll::~LoopPoll() { impl_->endWait(); }

// A set has no single signal (Readiness).
bool LoopPoll::open(uv_loop_t* loop, Descriptor descriptor) {
  if (isObject(descriptor)) impl_->signal = objectOf(descriptor)->signal();
  else impl_->raw = handleOf(descriptor);
  if (impl_->signal == nullptr && impl_->raw == nullptr) return false;
  return uv_async_init(loop, impl_.get(), [](uv_async_t* async) {
           auto* const self = static_cast<Impl*>(async);
           if (self->wait == nullptr) return;  // stopped in the meantime
           self->endWait();
           self->beginWait();
           self->readable(self->data);
         }) == 0;
}

bool LoopPoll::start(void (*readable)(void* data)) {
  impl_->readable = readable;
  return impl_->wait != nullptr || impl_->beginWait();
}

void LoopPoll::stop() { impl_->endWait(); }

uv_handle_t* LoopPoll::handle() { return reinterpret_cast<uv_handle_t*>(static_cast<uv_async_t*>(impl_.get())); }

}  // namespace nd::js
