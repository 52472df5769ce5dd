// Receives of shared receive queues, which queue pairs take as messages arrive (IBA 1 §10.2.9; networkdirect §6.12).
#pragma once
#include "transport/scheduler.h"

namespace nd {

class SharedReceives : public Role {
 public:
  using Role::Role;

  bool refresh(Srq& srq);  // false: the ring is corrupt
  bool take(Qp& qp);       // false: none available
  void checkLimit(Srq& srq);
  Status resize(Srq& srq, std::shared_ptr<Ring> ring, uint64_t address, uint32_t entries);
};

}  // namespace nd
