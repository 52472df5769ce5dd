// Manages RDMA ports: which process on this host listens on a service id (by the name "port/<service>/<port>/<gid>",
// local_names.h), and which ports connections use (rdma_port_blocks.h).
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

// Returns the name of a claim in local_names.h. A null address stands for all addresses.
std::string portName(uint32_t service, uint16_t port, const Gid* address);

class RdmaPorts {
 public:
  // The total time that other processes may take to reply.
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

  // Returns the kernel of this process that listens there, or 0 if none does. A claim of the address takes precedence
  // over one of all addresses.
  KernelId find(uint32_t service, uint16_t port, const Gid& address);
  // Forwards a frame to another process's claim. The connection to the owner is kept until the owner closes it with the
  // claim. The engine's lock is held.
  enum class HandOver {
    kDone,
    kNoOwner,  // no owner, or it does not accept the frame
    kUnsure,   // the port had no owner a moment ago, and too many lookups have failed
    kLacking,  // no descriptor is left for the lookup
  };
  HandOver handOver(uint32_t service, uint16_t port, const Gid& address, const Frame& frame, uint64_t now);
  // Accepts connections of processes that forward to this claim, or query the owner of this block.
  bool acceptOn(uint32_t claim, Inbound& inbound);  // see Inbound::acceptFrom
  // Sets whether the claim's listener is watched.
  void hear(uint32_t claim, bool on);
  // Handles another process's request for one of this process's ports. The reply is sent on that connection.
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
  // Limits lookups, because each costs some system calls. After a burst of this many, one is allowed per interval.
  class LookupRate {
   public:
    bool take(uint64_t now);

   private:
    static constexpr uint64_t kAtOnce = 64, kEachNs = 1'000'000;
    uint64_t used_ = 0;  // when the first of the kAtOnce lookups is available again
  };
  bool sendToKnown(const std::string& name, const Frame& frame);
  void keepOwner(std::string name, UniqueFd connection);

  LocalNames& names_;
  Readiness& readiness_;
  std::mutex mutex_;  // the innermost lock; only system calls that do not wait are made while it is held
  uint32_t nextId_ = 1;
  std::map<uint32_t, Claim> claims_;
  std::unordered_multimap<uint32_t, uint32_t> byPort_;  // ids of claims by service and port
  RdmaPortBlocks blocks_;
  std::vector<Owner> owners_;
  uint64_t uses_ = 0;
  LookupRate lookupRate_;
};

}  // namespace nd
