#include "host/udp_port_warning.h"

#include <cerrno>
#include <cstring>

#include "base/ip.h"
#include "platform/udp_port_holder.h"
#include "slots/other_dialects.h"

namespace nd {
namespace {

std::string describeHolder(IpFamily family) {
  const UdpPortHolder holder = findUdpPortHolder(family, kRocePort);
  if (holder.process == 0) return holder.text;
  for (const OtherDialect& other : otherDialects())
    if (other.process == holder.process) return holder.text + ", which runs another version of this package";
  return holder.text;
}

std::string describeProblem(IpFamily family, int error) {
  const bool absent = error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
  if (error == 0 || (absent && family == IpFamily::kV6)) return "";  // no problem on a host without IPv6
  std::string problem = std::string("UDP port 4791 (RoCEv2) on ") + (family == IpFamily::kV4 ? "IPv4" : "IPv6");
  if (error == EADDRINUSE)
    problem += " is held by " + describeHolder(family) +
               "; until it is released, only this user's processes on this host that run this version of the package "
               "can be reached";
  else problem += std::string(" cannot be bound: ") + std::strerror(error);
  return problem;
}

}  // namespace

std::string udpPortWarning(int error4, int error6) {
  const std::string v4 = describeProblem(IpFamily::kV4, error4), v6 = describeProblem(IpFamily::kV6, error6);
  return v4 + (v4.empty() || v6.empty() ? "" : "; ") + v6;
}

}  // namespace nd
