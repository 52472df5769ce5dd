// Handles CQ_NOTIFY without the kernel's thread. Once the kernel has passed a request for a completion queue's event to
// the HCA, the user's own thread passes later requests to the HCA, until the kernel calls end().
#pragma once
#include <unordered_map>

#include "request_channel.h"
#include "engine/engine.h"

namespace nd::js {

class CqEvents final : public door::EventSource {
 public:
  CqEvents(Engine& engine, Handle cq, const std::shared_ptr<door::Channel>& channel)
      : engine_(engine), cq_(cq), channel_(channel) {}
  bool wait(uint32_t type, uint32_t slot, uint32_t serial) override;
  void cancel(uint32_t slot, uint32_t status) override;
  void endAll(uint32_t status) override;
  // Returns whether it belongs to this channel.
  bool isOf(const door::Channel* channel) const { return channel_.lock().get() == channel; }
  // Stops this, and ends the waiting requests. For the kernel's thread.
  void end(uint32_t status);

 private:
  struct Sink;
  Engine& engine_;
  const Handle cq_;
  const std::weak_ptr<door::Channel> channel_;
  uint64_t begun_ = 0;
  std::unordered_map<uint32_t, std::shared_ptr<Sink>> sinks_;  // by slot; some may have fired
};

}  // namespace nd::js
