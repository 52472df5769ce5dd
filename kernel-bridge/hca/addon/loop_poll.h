// Notifies an event loop that a descriptor is readable.
#pragma once
#include <uv.h>

#include <memory>

#include "platform/unique_fd.h"

namespace nd::js {

// Used on the loop's thread only. It exists until the loop has closed its handle.
class LoopPoll {
 public:
  LoopPoll();
  ~LoopPoll();
  // Returns false if the loop cannot watch this descriptor.
  bool open(uv_loop_t* loop, Descriptor descriptor);
  // Calls `readable` with the `data` of handle(), repeatedly while the descriptor is readable.
  bool start(void (*readable)(void* data));
  void stop();
  // Returns the handle of an open poll, which the caller must close.
  uv_handle_t* handle();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd::js
