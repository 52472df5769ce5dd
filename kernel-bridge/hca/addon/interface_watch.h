// Notifies an isolate of changes of the host's network interfaces, or of their addresses.
#pragma once
#include "env.h"

namespace nd::js {

// An InterfaceEvents socket in the environment's loop, which it does not keep alive.
class InterfaceWatch final : public Closable {
 public:
  // watchInterfaces(onChange): returns a function that ends the watch; undefined if the system has no such socket.
  static Napi::Value watchInterfaces(const Napi::CallbackInfo& info);
  ~InterfaceWatch() override;
  Rank rank() const override { return Rank::kServer; }
  void closeNow() override;

 private:
  struct Holder;
  InterfaceWatch(EnvData& data, Napi::Function onChange);
  bool open(EnvData& data);

  LoopCallback onChange_;
  std::shared_ptr<Teardown> teardown_;
  Holder* holder_ = nullptr;  // null: not open
};

}  // namespace nd::js
