// The end of a kernel, with its process or Worker: the peers of its queue pairs hear of it, and all its objects go.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class KernelEnd : public Role {
 public:
  using Role::Role;

  void detach(KernelId kernel);

 private:
  void sendWill(Qp& qp);
  uint32_t gsiPsn_ = 0;
};

}  // namespace nd
