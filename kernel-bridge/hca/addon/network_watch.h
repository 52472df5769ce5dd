// Notifies an isolate of network changes on the host: interfaces and their addresses, or routes.
#pragma once
#include "env.h"
#include "platform/network_events.h"

namespace nd::js {

// A NetworkEvents socket in the environment's loop. It does not keep the loop alive.
class NetworkWatch final : public Closable {
 public:
  // (onChange): returns a function that ends the watch, or undefined if the OS provides no such socket.
  static Napi::Value watchInterfaces(const Napi::CallbackInfo& info) { return watch(info, NetworkPart::kInterfaces); }
  static Napi::Value watchRoutes(const Napi::CallbackInfo& info) { return watch(info, NetworkPart::kRoutes); }
  ~NetworkWatch() override;
  Rank rank() const override { return Rank::kServer; }
  void closeNow() override;

 private:
  struct Holder;
  NetworkWatch(EnvData& data, Napi::Function onChange);
  static Napi::Value watch(const Napi::CallbackInfo& info, NetworkPart part);
  bool open(EnvData& data, NetworkPart part);

  LoopCallback onChange_;
  std::shared_ptr<Teardown> teardown_;
  Holder* holder_ = nullptr;  // null: not open
};

}  // namespace nd::js
