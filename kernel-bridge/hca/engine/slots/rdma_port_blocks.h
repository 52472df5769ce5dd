// Free RDMA ports are claimed in blocks of 64. A block has a single name (local_names.h), "ports/<service
// hex>/<first>", and a port of the block gets its own name only when a program listens on it. A process that needs a
// specific port of another's block requests it from the owner of the block. The owner never hands out a port that it
// has lent.
#pragma once
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "platform/local_names.h"
#include "platform/readiness.h"
#include "platform/unique_fd.h"
#include "slots/frame.h"

namespace nd {

// The body of a kPortRequest frame; the address is the frame's destination.
struct PortRequest {
  uint32_t service = 0;
  uint16_t port = 0;   // 0: any free port of the block
  uint16_t first = 0;  // the first port of the block
  uint32_t any = 0;    // 1: all addresses
};

enum class PortVerdict : uint32_t { kYours, kTaken, kNoOwner };  // kNoOwner: the block has no owner

// The body of a kPortReply frame.
struct PortReply {
  PortVerdict verdict = PortVerdict::kTaken;
  uint32_t port = 0;
};

// Requests a port from the owner of the block and waits for the reply. Returns kTaken if none arrives in
// time. `deadline` in milliseconds of the monotonic clock. `*refused`: EMFILE or ENFILE if no descriptor is available
// for the request.
PortReply requestPort(LocalNames& names, const PortRequest& request, const Gid* address, int64_t deadline,
                      int* refused);
int64_t monotonicMs();

// The blocks of this process. Not locked internally.
class RdmaPortBlocks {
 public:
  static constexpr uint32_t kFirstPort = 49152, kPorts = 64, kBlocks = (65536 - kFirstPort) / kPorts;
  RdmaPortBlocks(LocalNames& names, Readiness& readiness) : names_(names), readiness_(readiness) {}

  static bool covers(uint16_t port) { return port >= kFirstPort; }
  static uint16_t firstOf(uint16_t port) { return static_cast<uint16_t>(port - port % kPorts); }
  // The blocks are visited from a random start: nth() returns the nth block from `start`.
  uint32_t randomStart() { return random_() % kBlocks; }
  static uint16_t nth(uint32_t start, uint32_t n) {
    return static_cast<uint16_t>(kFirstPort + (start + n) % kBlocks * kPorts);
  }

  // Returns a free port, if necessary from another block, whose listener then belongs to the claim `id`. Fails with
  // kTooManyAddresses if other processes have all blocks.
  Status take(uint32_t service, uint32_t id, uint16_t* port);
  // Marks the port as used, or afterwards as free. Ports outside these blocks are ignored.
  void use(uint32_t service, uint16_t port);
  void giveBack(uint32_t service, uint16_t port);
  bool has(uint32_t service, uint16_t port) const { return blocks_.count(keyOf(service, firstOf(port))) != 0; }
  // Lends a port to another process; this process never hands it out again.
  void lend(uint32_t service, uint16_t port);
  // Lends any free port of a block, or returns 0 if there is none.
  uint16_t lendAny(uint32_t service, uint16_t first);
  Descriptor listenerOf(uint32_t id) const;  // kNoDescriptor: not the listener of a block
  void clear() { blocks_.clear(); }

 private:
  struct Block {
    uint32_t id = 0;
    UniqueFd listener;
    uint64_t used = 0;  // ports in use by claims of this process
    uint64_t lent = 0;  // ports that another process has borrowed or claimed at some time
    uint32_t next = 0;  // the port after the last one handed out
    uint64_t free() const { return ~(used | lent); }
    uint32_t pick();  // requires a free port
  };
  static uint32_t keyOf(uint32_t service, uint16_t first) { return service << 16 | first; }
  static uint64_t bit(uint16_t port) { return uint64_t{1} << port % kPorts; }
  Block* find(uint32_t service, uint16_t port);
  Status claim(uint32_t service, uint16_t first, uint32_t id);

  LocalNames& names_;
  Readiness& readiness_;
  std::random_device random_;
  std::map<uint32_t, Block> blocks_;
  uint16_t lastTaken_ = 0;  // a port of the last block used, of any service
};

}  // namespace nd
