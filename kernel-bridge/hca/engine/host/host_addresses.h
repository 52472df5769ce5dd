// The valid sources and destinations of packets: this host's addresses, and the multicast groups that this process has
// joined. All parts of the host use it, with the engine's lock held.
#pragma once
#include <vector>

#include "platform/local_addresses.h"
#include "udp/udp_wire.h"

namespace nd {

class Addresses {
 public:
  explicit Addresses(const Clock& clock) : clock_(clock) {}
  bool isOwn(const Gid& address) { return own_.contains(address, clock_); }
  // Returns whether a packet comes from a valid source and is addressed to this host or to a group joined on its
  // interface.
  bool accepts(const PacketMeta& meta);
  // Returns the index of the interface that has this address, or 0 if none has it.
  static uint32_t interfaceOf(const Gid& address);
  // `udp`: the socket of the group's family, open or not. A socket that only sends joins no group.
  Status join(UdpWire& udp, const Gid& group, uint32_t interface);
  void leave(UdpWire& udp, const Gid& group, uint32_t interface);
  // Joins or leaves for another process, whose connection to this one has the number `member`. The OS delivers that
  // process's datagrams to the port's socket, which this process owns.
  void joinFor(uint32_t member, UdpWire& udp, const Gid& group, uint32_t interface);
  void leaveFor(uint32_t member, UdpWire& udp, const Gid& group, uint32_t interface);
  // Leaves all groups of a family that the member has joined, because its connection has ended.
  void leaveAllFor(uint32_t member, UdpWire& udp, IpFamily family);
  void forgetOthers() { others_.clear(); }
  bool othersJoined(const Gid& group, uint32_t interface) const { return contains(others_, group, interface); }
  template <typename Function>
  void forEachJoined(IpFamily family, Function function) const {
    for (const Joined& j : joined_)
      if (j.group.isV4() == (family == IpFamily::kV4)) function(j.group, j.interface);
  }
  // Joins the groups of the family again, because `udp` is a new socket.
  void rejoin(UdpWire& udp, IpFamily family);

 private:
  struct Joined {
    Gid group;
    uint32_t interface;
    uint32_t member = 0;  // the member that joined; 0: this process
  };
  using Groups = std::vector<Joined>;
  static constexpr size_t kMostOthers = 4096;
  static bool contains(const Groups& groups, const Gid& group, uint32_t interface);
  static bool contains(const Groups& groups, const PacketMeta& meta) {
    return contains(groups, meta.destination, meta.scopeId);
  }
  static void remove(Groups* groups, const Gid& group, uint32_t interface);
  const Clock& clock_;
  LocalAddresses own_;
  Groups joined_;
  Groups others_;  // groups that other processes have joined
};

}  // namespace nd
