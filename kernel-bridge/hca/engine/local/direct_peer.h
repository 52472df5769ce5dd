// The accessing side of direct access, with the peer's published table, the peer's memory mapped in this process, and
// the announcement that this side is inside (direct_table.h). Each pair has one DirectPeer. All functions require the
// engine's lock. Published data is never trusted without a check.
#pragma once
#include <vector>

#include "local/direct_table.h"
#include "local/local_maps.h"
#include "platform/mapping.h"
#include "schema/ring.h"

namespace nd {

class DirectPeer {
 public:
  static constexpr uint32_t kMostRequested = LocalOffers::kMost;

  struct Request {
    uint32_t qpn, peer;    // this side's queue pair, and the peer's
    uint32_t rkey, right;  // one of WV_ACCESS_* of remote operations, or VIEW
    uint32_t pkey;
    uint64_t address, length;
    uint32_t touched = 0;  // the part of `length`, from its start, that this access reads or changes, at most
                           // DirectAccessRecord::kMostBytes; 0: all
  };
  enum class Refusal : uint8_t { kUnpublished, kUnmapped };
  // A file of the peer that should be mapped.
  struct Wish {
    uint32_t file;
    bool writable, requested;
    bool descriptor;  // also request its descriptor, for a view
  };

  void attach(DirectAccessRecord* access) { access_ = access; }
  // Returns false if it is not a table, or if its size could change.
  bool open(Descriptor table);
  bool ready() const { return pages_.get() != nullptr; }
  void close();

  // Starts an access and returns the address of the request's memory in this process; leave() must follow. Returns null
  // if the peer has to decide, or if its memory is not mapped yet.
  uint8_t* enter(const Request& request, LocalMaps& maps, Refusal* why);
  // Returns false if the peer has withdrawn the memory in the meantime, so that the access does not count.
  bool leave() { return DirectInUse::leave(&access_->inUse, entered_); }

  // Returns the file that contains the request's memory. The caller maps it outside `maps`, for longer than the peer
  // allows access to it. Returns no descriptor if the request is refused, or while the file is being requested from the
  // peer.
  FilePart view(const Request& request, LocalMaps& maps, Refusal* why);
  bool wantsDescriptor(uint32_t file) const;
  // Returns the right that a queue pair must have for it.
  static uint32_t rightOfQp(uint32_t right) { return right == abi::kAccessRemoteView ? abi::kAccessRemoteRead : right; }

  // Whether files must be requested from the peer; send(wish) returns false if no more can be sent now.
  bool news() const { return news_; }
  template <typename Send>
  void sendAll(Send send);
  // Called when the peer has freed the memory, or offered it.
  void forgetWish(uint32_t file);

 private:
  const DirectTable* table() const { return static_cast<const DirectTable*>(pages_.get()); }
  const DirectKey* find(uint32_t rkey);
  void wish(uint32_t file, bool writable, bool descriptor);
  bool allows(const Request& request, const DirectKey& record, uint32_t file, uint64_t shift) const;

  Mapping pages_;
  DirectAccessRecord* access_ = nullptr;
  uint64_t entered_ = 0;
  std::vector<Wish> wishes_;
  bool news_ = false;
};

template <typename Send>
void DirectPeer::sendAll(Send send) {
  news_ = false;
  for (Wish& wish : wishes_) {
    if (wish.requested) continue;
    wish.requested = send(wish);
    news_ |= !wish.requested;
  }
}

}  // namespace nd
