// The one HCA of this process: clock, host, engine and the engine's thread. The first soft kernel starts it, and it exists until
// the process ends (the end of a Worker does not end it).
#pragma once
#include "engine/engine.h"
#include "host/host.h"

namespace nd {

class Process {
 public:
  static Process& instance();

  // Starts on the first call; later ones only call Host::join(). `problem` explains a failure.
  Status start(const EngineOptions& engine, const HostOptions& host, std::string* problem);
  bool started() const;
  Engine& engine();
  Host& host();

 private:
  Process();
  ~Process();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd
