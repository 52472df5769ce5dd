#include "platform/windows/winsock.h"

#include "platform/network_interfaces.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "platform/local_addresses.h"
#include "platform/windows/error_text.h"

namespace nd {

Gid gidOf(const sockaddr* address) {
  Gid gid;
  if (address->sa_family == AF_INET) gid = gidOfIpv4(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
  else if (address->sa_family == AF_INET6)
    std::memcpy(gid.raw.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  return gid;
}

namespace {

// The list of network adapters of Windows.
class Adapters {
 public:
  // Returns 0 or an errno. `flags`: those of GetAdaptersAddresses().
  int read(unsigned long flags);
  // Returns the first adapter, or null if the list is empty.
  const IP_ADAPTER_ADDRESSES* first() const;

 private:
  std::vector<uint64_t> room_;
  bool empty_ = false;
};

int Adapters::read(unsigned long flags) {
  constexpr ULONG kFirstBytes = 16384;  // as Microsoft's documentation recommends
  constexpr int kAttempts = 4;          // the list may grow meanwhile
  ULONG bytes = kFirstBytes, error = ERROR_BUFFER_OVERFLOW;
  for (int i = 0; i < kAttempts && error == ERROR_BUFFER_OVERFLOW; i++) {
    room_.resize((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    error =
        GetAdaptersAddresses(AF_UNSPEC, flags, nullptr, reinterpret_cast<IP_ADAPTER_ADDRESSES*>(room_.data()), &bytes);
  }
  if (error == ERROR_NO_DATA || error == ERROR_ADDRESS_NOT_ASSOCIATED) return empty_ = true, 0;
  return error == NO_ERROR ? 0 : errnoOf(error);
}

const IP_ADAPTER_ADDRESSES* Adapters::first() const {
  return empty_ ? nullptr : reinterpret_cast<const IP_ADAPTER_ADDRESSES*>(room_.data());
}

InterfaceAddress addressOf(const IP_ADAPTER_UNICAST_ADDRESS& from, uint32_t index) {
  InterfaceAddress address;
  address.gid = gidOf(from.Address.lpSockaddr);
  address.v4 = from.Address.lpSockaddr->sa_family == AF_INET;
  address.prefixLength = from.OnLinkPrefixLength;
  if (isLinkLocal6(address.gid)) address.scopeId = index;
  return address;
}

// Duplicate and tentative addresses cannot be used.
bool isUsable(const IP_ADAPTER_UNICAST_ADDRESS& address) {
  const int family = address.Address.lpSockaddr->sa_family;
  return (family == AF_INET || family == AF_INET6) && address.DadState != IpDadStateInvalid &&
         address.DadState != IpDadStateTentative && address.DadState != IpDadStateDuplicate;
}

}  // namespace

int listInterfaces(std::vector<NetworkInterface>* out) {
  out->clear();
  Adapters adapters;
  if (const int error = adapters.read(GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER))
    return error;
  for (const IP_ADAPTER_ADDRESSES* a = adapters.first(); a != nullptr; a = a->Next) {
    NetworkInterface found;
    found.name = narrowOf(a->FriendlyName);
    found.index = a->IfIndex != 0 ? a->IfIndex : a->Ipv6IfIndex;
    found.mtu = static_cast<uint32_t>(std::min<uint64_t>(a->Mtu, INT32_MAX));  // loopback is unlimited
    // No entry shows that an adapter is disabled; one without a carrier is down.
    found.up = a->OperStatus != IfOperStatusNotPresent;
    found.running = a->OperStatus == IfOperStatusUp;
    found.mac.assign(a->PhysicalAddress,
                     a->PhysicalAddress + std::min<ULONG>(a->PhysicalAddressLength, MAX_ADAPTER_ADDRESS_LENGTH));
    for (const IP_ADAPTER_UNICAST_ADDRESS* u = a->FirstUnicastAddress; u != nullptr; u = u->Next)
      if (isUsable(*u)) found.addresses.push_back(addressOf(*u, found.index));
    if (found.index != 0) out->push_back(std::move(found));
  }
  std::sort(out->begin(), out->end(),
            [](const NetworkInterface& a, const NetworkInterface& b) { return a.index < b.index; });
  return 0;
}

bool hasInterface(uint32_t index) {
  std::vector<NetworkInterface> all;
  if (listInterfaces(&all) != 0) return false;
  return std::any_of(all.begin(), all.end(), [&](const NetworkInterface& one) { return one.index == index; });
}

void LocalAddresses::refresh() {
  std::vector<NetworkInterface> all;
  if (listInterfaces(&all) != 0) return;
  addresses_.clear();
  for (const NetworkInterface& one : all)
    for (const InterfaceAddress& own : one.addresses) addresses_.push_back(own.gid);
}

// The id of this Windows installation.
std::string hostIdentity() {
  constexpr DWORD kMostLetters = 128;
  wchar_t text[kMostLetters];
  DWORD bytes = sizeof text;
  if (RegGetValueW(HKEY_LOCAL_MACHINE, L"SOFTWARE\\Microsoft\\Cryptography", L"MachineGuid",
                   RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY, nullptr, text, &bytes) == ERROR_SUCCESS)
    return narrowOf(text);
  DWORD letters = kMostLetters;
  return GetComputerNameW(text, &letters) != 0 ? narrowOf(text) : "";
}

}  // namespace nd
