// Tests of interfaces as reported by the OS, with both ends of a cable in a private network namespace.
#include "platform/network_interfaces.h"
#include <fcntl.h>
#include <linux/if_tun.h>
#include <poll.h>

#include "host_test.h"
#include "platform/linux/host_identity.h"
#include "platform/network_events.h"
#include "platform/local_addresses.h"

using namespace nd;

namespace {

const NetworkInterface* find(const std::vector<NetworkInterface>& all, const std::string& name) {
  for (const NetworkInterface& i : all)
    if (i.name == name) return &i;
  return nullptr;
}

const InterfaceAddress* find(const NetworkInterface& i, const Gid& gid) {
  for (const InterfaceAddress& a : i.addresses)
    if (a.gid == gid) return &a;
  return nullptr;
}

std::vector<NetworkInterface> list() {
  std::vector<NetworkInterface> all;
  HOST_CHECK(listInterfaces(&all) == 0);
  return all;
}

Gid v6(std::initializer_list<uint8_t> head, uint8_t last) {
  Gid gid;
  std::copy(head.begin(), head.end(), gid.raw.begin());
  gid.raw[15] = last;
  return gid;
}

// Whether the socket becomes readable, immediately or when the OS gets to it.
bool told(NetworkEvents& events, int timeoutMs = kTimeoutMs) {
  pollfd fd{events.fd(), POLLIN, 0};
  return poll(&fd, 1, timeoutMs) == 1 && events.take();
}

// Each change is reported, and nothing else is.
void testEvents() {
  NetworkEvents events;
  HOST_CHECK(!events.take());  // the socket is not open
  HOST_CHECK(events.open(NetworkPart::kInterfaces));
  HOST_CHECK(!told(events, 0));
  for (const char* command : {"ip link add cable2 type veth peer name cable3", "ip address add 10.98.1.1/24 dev cable2",
                              "ip address add fd98::1/64 dev cable2 nodad", "ip link set cable2 mtu 1400",
                              "ip link set cable2 address 02:00:00:00:00:09", "ip link set cable2 up",
                              "ip address delete 10.98.1.1/24 dev cable2", "ip link delete cable2"}) {
    while (told(events, 0)) {}
    HOST_CHECK(std::system(command) == 0);
    HOST_CHECK(told(events));
  }
  // More changes occur than the socket buffers. A loss counts as a change as well.
  HOST_CHECK(std::system("for i in $(seq 400); do echo link add many$i type veth peer name other$i; done | "
                         "ip -batch -") == 0);
  HOST_CHECK(told(events));
  while (told(events, 100)) {}
  HOST_CHECK(std::system("ip link delete many7") == 0);
  HOST_CHECK(told(events));
}

// The identity survives restarts in the host's own network, and distinguishes containers.
void testIdentity() {
  const std::string own = "net:[4026531833]";
  HOST_CHECK(hostIdentityOf("m1", "boot 1", own) == hostIdentityOf("m1", "boot 2", own));
  HOST_CHECK(hostIdentityOf("m1", "boot 1", own) != hostIdentityOf("m2", "boot 1", own));
  // Two containers of one host differ, and so do two hosts whose containers have the machine id of one image and the
  // same number.
  HOST_CHECK(hostIdentityOf("m1", "boot 1", "net:[4026532253]") != hostIdentityOf("m1", "boot 1", "net:[4026532254]"));
  HOST_CHECK(hostIdentityOf("m1", "boot 1", "net:[4026532253]") != hostIdentityOf("m1", "boot 2", "net:[4026532253]"));
  // Tests a missing machine id, and a missing number of the namespace.
  HOST_CHECK(hostIdentityOf("", "boot 1", own) != hostIdentityOf("", "boot 2", own));
  for (const char* nothing : {"", "net:[", "net:[x]"})
    HOST_CHECK(hostIdentityOf("m1", "boot 1", nothing) != hostIdentityOf("m1", "boot 2", nothing));
  // The identity of this process, which is in its own network.
  HOST_CHECK(!hostIdentity().empty() && hostIdentity() == hostIdentity());
}

// An interface without a link layer, and so without a MAC, like those of WireGuard, PPP and tunnels.
void testPointToPoint() {
  const UniqueFd tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  ifreq request{};
  std::strcpy(request.ifr_name, "tun0");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (!tun.valid() || ioctl(tun.get(), TUNSETIFF, &request) != 0) {
    std::printf("host_interfaces: point-to-point is skipped, this process may not make a TUN interface\n");
    return;
  }
  HOST_CHECK(std::system("ip address add 10.0.0.1 peer 10.0.0.2 dev tun0 && ip link set tun0 mtu 1420 up") == 0);
  const std::vector<NetworkInterface> all = list();
  const NetworkInterface* own = find(all, "tun0");
  HOST_CHECK(own != nullptr && all.size() == 2);
  if (own == nullptr) return;
  HOST_CHECK(own->up && own->running && own->mtu == 1420 && own->mac.empty() && own->index == if_nametoindex("tun0"));
  HOST_CHECK(find(*own, gidOfIpv4(htonl(0x0A000001))) != nullptr &&
             find(*own, gidOfIpv4(htonl(0x0A000002))) == nullptr);
}

}  // namespace

int main() {
  testIdentity();
  if (!hosttest::privateNetwork()) {
    std::printf("host_interfaces: skipped, it may not make interfaces here\n");
    return 0;
  }
  std::vector<NetworkInterface> all = list();
  const NetworkInterface* lo = find(all, "lo");
  HOST_CHECK(lo != nullptr && lo->index == if_nametoindex("lo") && lo->up && lo->running && lo->mtu >= 1500);
  const Gid loopback = gidOfIpv4(htonl(INADDR_LOOPBACK));
  HOST_CHECK(lo != nullptr && find(*lo, loopback) != nullptr && find(*lo, loopback)->v4 &&
             find(*lo, loopback)->prefixLength == 8);

  testPointToPoint();
  if (std::system("ip link add cable0 type veth peer name cable1 2> /dev/null") != 0) {
    std::printf("host_interfaces: the rest is skipped: no veth interfaces here\n");
    return hosttest::finish("host_interfaces");
  }
  all = list();
  const NetworkInterface* end = find(all, "cable0");
  // The interface is neither up nor has an address, but is present.
  HOST_CHECK(end != nullptr && !end->up && !end->running && end->addresses.empty() && end->mac.size() == 6);

  HOST_CHECK(std::system("ip link set cable0 address 02:11:22:33:44:55 mtu 4200 up"
                         " && ip addr add 10.9.8.7/21 dev cable0 label cable0:x"
                         " && ip addr add 10.7.0.1 peer 10.7.0.2/32 dev cable0"
                         " && ip addr add fd00::1/60 dev cable0 nodad"
                         " && ip addr add fe80::77/64 dev cable0 nodad") == 0);
  all = list();
  end = find(all, "cable0");
  HOST_CHECK(end != nullptr);
  if (end == nullptr) return hosttest::finish("host_interfaces");
  HOST_CHECK(end->up && !end->running && end->mtu == 4200);
  HOST_CHECK(end->index == if_nametoindex("cable0"));
  HOST_CHECK((end->mac == std::vector<uint8_t>{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}));
  const InterfaceAddress* labelled = find(*end, gidOfIpv4(htonl(0x0A090807)));
  HOST_CHECK(labelled != nullptr && labelled->v4 && labelled->prefixLength == 21 && labelled->scopeId == 0);
  // For a point-to-point address, the local end is reported.
  HOST_CHECK(find(*end, gidOfIpv4(htonl(0x0A070001))) != nullptr);
  HOST_CHECK(find(*end, gidOfIpv4(htonl(0x0A070002))) == nullptr);
  const InterfaceAddress* global = find(*end, v6({0xfd}, 1));
  HOST_CHECK(global != nullptr && !global->v4 && global->prefixLength == 60 && global->scopeId == 0);
  const InterfaceAddress* linkLocal = find(*end, v6({0xfe, 0x80}, 0x77));
  HOST_CHECK(linkLocal != nullptr && linkLocal->prefixLength == 64 && linkLocal->scopeId == end->index);

  HOST_CHECK(std::system("ip link set cable1 up") == 0);
  // The OS may detect a carrier with a delay.
  const auto carrier = [&] { return find(all, "cable0")->running && find(all, "cable1")->running; };
  all = list();
  for (int i = 0; i < 1000 && !carrier(); i++) usleep(10'000), all = list();
  HOST_CHECK(carrier());
  HOST_CHECK(all.size() == 3 && all[0].index < all[1].index && all[1].index < all[2].index);
  HOST_CHECK(std::system("ip link delete cable0") == 0);
  HOST_CHECK(list().size() == 1);
  testEvents();
  return hosttest::finish("host_interfaces");
}
