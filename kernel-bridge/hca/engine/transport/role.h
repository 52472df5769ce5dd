// What the roles of a transport have in common.
#pragma once
#include "transport/scheduler.h"

namespace nd {

struct Transport;

class Role {
 public:
  explicit Role(Transport& transport);

 protected:
  Transport& t_;  // the other roles
  Context& c_;
  Scheduler& s_;
};

}  // namespace nd
