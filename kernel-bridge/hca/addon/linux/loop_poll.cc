#include "addon/loop_poll.h"

namespace nd::js {

struct LoopPoll::Impl : uv_poll_t {
  void (*readable)(void* data) = nullptr;
};

LoopPoll::LoopPoll() : impl_(new Impl) {}
LoopPoll::~LoopPoll() = default;

bool LoopPoll::open(uv_loop_t* loop, Descriptor descriptor) { return uv_poll_init(loop, impl_.get(), descriptor) == 0; }

bool LoopPoll::start(void (*readable)(void* data)) {
  impl_->readable = readable;
  return uv_poll_start(impl_.get(), UV_READABLE,
                       [](uv_poll_t* poll, int, int) { static_cast<Impl*>(poll)->readable(poll->data); }) == 0;
}

void LoopPoll::stop() { uv_poll_stop(impl_.get()); }

uv_handle_t* LoopPoll::handle() { return reinterpret_cast<uv_handle_t*>(static_cast<uv_poll_t*>(impl_.get())); }

}  // namespace nd::js
