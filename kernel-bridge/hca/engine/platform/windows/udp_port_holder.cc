#include "platform/windows/winsock.h"

#include "platform/udp_port_holder.h"

#include <vector>

#include "platform/windows/error_text.h"

namespace nd {
namespace {

// 0: unknown.
template <typename Table>
DWORD holderIn(ULONG family, uint16_t port) {
  DWORD bytes = 0;
  GetExtendedUdpTable(nullptr, &bytes, FALSE, family, UDP_TABLE_OWNER_PID, 0);
  std::vector<uint64_t> room(bytes / sizeof(uint64_t) + 64);
  bytes = static_cast<DWORD>(room.size() * sizeof(uint64_t));
  auto* const table = reinterpret_cast<Table*>(room.data());
  if (GetExtendedUdpTable(table, &bytes, FALSE, family, UDP_TABLE_OWNER_PID, 0) != NO_ERROR) return 0;
  for (DWORD i = 0; i < table->dwNumEntries; i++)
    if (ntohs(static_cast<u_short>(table->table[i].dwLocalPort)) == port) return table->table[i].dwOwningPid;
  return 0;
}

std::string programOf(DWORD process) {
  constexpr DWORD kMostLetters = 1024;
  const UniqueFd opened(descriptorOf(OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, process)));
  wchar_t path[kMostLetters];
  DWORD letters = kMostLetters;
  if (!opened.valid() || QueryFullProcessImageNameW(handleOf(opened.get()), 0, path, &letters) == 0) return "";
  const std::string whole = narrowOf(path);
  return whole.substr(whole.find_last_of('\\') + 1);
}

}  // namespace

UdpPortHolder findUdpPortHolder(IpFamily family, uint16_t port) {
  const DWORD process = family == IpFamily::kV4 ? holderIn<MIB_UDPTABLE_OWNER_PID>(AF_INET, port)
                                                : holderIn<MIB_UDP6TABLE_OWNER_PID>(AF_INET6, port);
  if (process == 0) return {"another process"};
  const std::string program = programOf(process);
  return {"process " + std::to_string(process) + (program.empty() ? "" : " (" + program + ")"), process};
}

}  // namespace nd
