#include "platform/udp_port_holder.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace nd {
namespace {

struct Holder {
  bool found = false;
  unsigned uid = 0;
  unsigned long inode = 0;
};

Holder findSocket(IpFamily family, uint16_t port) {
  Holder holder;
  FILE* file = std::fopen(family == IpFamily::kV4 ? "/proc/net/udp" : "/proc/net/udp6", "re");
  if (file == nullptr) return holder;
  char line[512];
  while (!holder.found && std::fgets(line, sizeof line, file) != nullptr) {
    // sl local:port remote:port st queues timer retransmits uid timeout inode
    unsigned localPort = 0, uid = 0;
    unsigned long inode = 0;
    if (std::sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*s %*x %*s %*s %*x %u %*u %lu", &localPort, &uid, &inode) != 3)
      continue;
    if (localPort == port) holder = {true, uid, inode};
  }
  std::fclose(file);
  return holder;
}

bool ownsSocket(const char* process, const std::string& link) {
  const std::string directory = std::string("/proc/") + process + "/fd";
  DIR* fds = opendir(directory.c_str());
  if (fds == nullptr) return false;
  bool owns = false;
  while (const dirent* entry = owns ? nullptr : readdir(fds)) {
    char target[64];
    const ssize_t n = readlink((directory + "/" + entry->d_name).c_str(), target, sizeof target - 1);
    if (n > 0) owns = link == std::string(target, static_cast<size_t>(n));
  }
  closedir(fds);
  return owns;
}

std::string commandName(const char* process) {
  FILE* file = std::fopen((std::string("/proc/") + process + "/comm").c_str(), "re");
  if (file == nullptr) return "";
  char name[64] = "";
  if (std::fgets(name, sizeof name, file) == nullptr) name[0] = 0;
  std::fclose(file);
  name[std::strcspn(name, "\n")] = 0;
  return name;
}

}  // namespace

UdpPortHolder findUdpPortHolder(IpFamily family, uint16_t port) {
  const Holder holder = findSocket(family, port);
  if (!holder.found) return {"another process"};
  if (holder.inode != 0) {
    const std::string link = "socket:[" + std::to_string(holder.inode) + "]";
    DIR* processes = opendir("/proc");
    UdpPortHolder owner;
    while (const dirent* entry = processes != nullptr && owner.text.empty() ? readdir(processes) : nullptr) {
      if (std::strspn(entry->d_name, "0123456789") != std::strlen(entry->d_name)) continue;
      if (ownsSocket(entry->d_name, link))
        owner = {std::string("process ") + entry->d_name + " (" + commandName(entry->d_name) + ")",
                 std::atoi(entry->d_name)};
    }
    if (processes != nullptr) closedir(processes);
    if (!owner.text.empty() && holder.uid != geteuid()) owner.text += " of user " + std::to_string(holder.uid);
    if (!owner.text.empty()) return owner;
  }
  // A driver's socket does not belong to a process. Only root sees the descriptors of all processes and can distinguish
  // the two.
  const bool driverLoaded = access("/sys/module/rdma_rxe", F_OK) == 0;
  if (holder.inode == 0 || geteuid() == 0 || (holder.uid == 0 && driverLoaded))
    return {"a kernel driver such as rdma_rxe"};
  return {"a process of user " + std::to_string(holder.uid)};
}

}  // namespace nd
