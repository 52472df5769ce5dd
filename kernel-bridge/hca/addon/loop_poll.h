// Tells an event loop that a descriptor is readable.
#pragma once
#include <uv.h>

#include <memory>

#include "platform/unique_fd.h"

namespace nd::js {

// All on the loop's thread. It lives until the loop has closed its handle.
class LoopPoll {
 public:
  LoopPoll();
  ~LoopPoll();
  // False: the loop cannot watch this one.
  bool open(uv_loop_t* loop, Descriptor descriptor);
  // Calls `readable` with the `data` of handle(), again and again as long as the descriptor is readable.
  bool start(void (*readable)(void* data));
  void stop();
  // Of an open one; the caller closes it.
  uv_handle_t* handle();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd::js
