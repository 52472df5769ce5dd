// Handles the end of a kernel, which ends with its process or Worker. Notifies the peers of its queue pairs, and
// destroys all its objects.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class KernelEnd : public Role {
 public:
  using Role::Role;

  void detach(KernelId kernel);

 private:
  void sendDreqOnExit(Qp& qp);
  uint32_t gsiPsn_ = 0;
};

}  // namespace nd
