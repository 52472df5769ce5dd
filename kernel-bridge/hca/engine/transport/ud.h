// Unreliable datagrams (IBA 1 §9.8.3; roce-wire §4): sending, receiving, and multicast groups.
#pragma once
#include <map>
#include <vector>
#include "transport/scheduler.h"

namespace nd {

class Datagrams : public Role {
 public:
  using Role::Role;

  void send(Qp& qp, SendEntry& e);  // not sent: `e.status` gives the reason
  void receive(Qp& qp, const PacketMeta& meta, const Packet& p);
  void receiveMulticast(const PacketMeta& meta, const Packet& p);
  bool detachFrom(Qp& qp, const Group& group);  // false: was not attached
  void detachFromAll(Qp& qp);

  std::map<Group, std::vector<Qp*>> groups;  // and the queue pairs attached
  uint32_t attached = 0;                     // members of all groups
};

}  // namespace nd
