// RDMA ports: which process of this host listens on a service id (local_names.h: "port/<service>/<port>/<gid>"), and
// which ports connections use (rdma_port_blocks.h).
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/host_counters.h"
#include "base/types.h"
#include "platform/unique_fd.h"
#include "slots/frame.h"
#include "slots/rdma_port_blocks.h"
#include "slots/slots.h"

namespace nd {

// The name of a claim in local_names.h. Null: all addresses.
std::string portName(uint32_t service, uint16_t port, const Gid* address);

class RdmaPorts {
 public:
  // Total time that other processes may take to reply.
  static constexpr int64_t kReplyMs = 1000;

  RdmaPorts(LocalNames& names, Readiness& readiness)
      : names_(names), readiness_(readiness), blocks_(names, readiness) {}

  // See Host::claimPort. Callable from any thread.
  Status claim(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim);
  // From now on other processes forward requests to it. See Host::openPort.
  Status open(uint32_t claim);
  void release(uint32_t claim);
  std::vector<uint32_t> releaseKernel(KernelId kernel);  // returns the claims
  void releaseAll();

  // The kernel of this process that listens there; a claim of the address takes precedence over one of all addresses.
  // 0: none.
  KernelId find(uint32_t service, uint16_t port, const Gid& address);
  // Forwards a frame to another process's claim. The connection to the owner is kept until the owner closes it with the
  // claim. The engine's lock is held.
  enum class HandOver {
    kDone,
    kNoOwner,  // no owner, or it does not accept the frame
    kUnsure,   // too many lookups have failed; a moment ago the port had no owner
    kLacking,  // no descriptor is left for the lookup
  };
  HandOver handOver(uint32_t service, uint16_t port, const Gid& address, const Frame& frame, uint64_t now);
  // Accepts connections of processes that forward to this claim, or query the owner of this block.
  bool acceptOn(uint32_t claim, Inbound& inbound);  // as Inbound::acceptFrom
  // Whether the claim's listener is watched.
  void hear(uint32_t claim, bool on);
  // Another process requests one of this process's ports; the reply is sent on that connection.
  void onRequest(const Frame& frame, Descriptor connection);

 private:
  struct Claim {
    KernelId kernel = 0;
    uint32_t service = 0;
    uint16_t port = 0;
    bool any = false;
    Gid address;
    UniqueFd listener;  // empty: a port of a block, without a listener
  };
  static uint32_t keyOf(uint32_t service, uint16_t port) { return service << 16 | port; }
  Status claimFree(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim);
  Status claimNumber(KernelId kernel, uint32_t service, const Gid* address, uint16_t port, int64_t deadline,
                     uint32_t* claim);
  bool hasBlock(uint32_t service, uint16_t port);
  // All of these require the lock.
  uint32_t add(KernelId kernel, uint32_t service, const Gid* address, uint16_t port, UniqueFd listener);
  std::map<uint32_t, Claim>::iterator drop(std::map<uint32_t, Claim>::iterator claim);
  Status bindName(uint32_t service, const Gid* address, uint16_t port, UniqueFd* listener);
  bool isTaken(uint32_t service, const Gid* address, uint16_t port) const;
  Descriptor listenerOf(uint32_t claim) const;  // kNoDescriptor: none
  // A connection to another process's claim.
  struct Owner {
    std::string name;
    UniqueFd connection;
    uint64_t used = 0;
  };
  static constexpr size_t kMaxOwners = 8;
  // Limits lookups, because each costs some system calls: a burst of this many, then one per interval.
  class LookupRate {
   public:
    bool take(uint64_t now);

   private:
    static constexpr uint64_t kAtOnce = 64, kEachNs = 1'000'000;
    uint64_t used_ = 0;  // when the first of kAtOnce is available again
  };
  bool sendToKnown(const std::string& name, const Frame& frame);
  void keepOwner(std::string name, UniqueFd connection);

  LocalNames& names_;
  Readiness& readiness_;
  std::mutex mutex_;  // innermost: only system calls that do not wait are executed while it is held
  uint32_t nextId_ = 1;
  std::map<uint32_t, Claim> claims_;
  std::unordered_multimap<uint32_t, uint32_t> byPort_;  // ids of claims by service and port
  RdmaPortBlocks blocks_;
  std::vector<Owner> owners_;
  uint64_t uses_ = 0;
  LookupRate lookupRate_;
};

}  // namespace nd
