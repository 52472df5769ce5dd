#include "local/direct_peer.h"

#include <algorithm>

#include "base/types.h"

namespace nd {

bool DirectPeer::open(Descriptor fd) {
  if (ready() || !pages_.openPublished(fd, sizeof(DirectTable))) return false;
  if (directLoad(table()->magic) == DirectTable::kMagic) return true;
  close();
  return false;
}

void DirectPeer::close() {
  pages_.unmap();
  wishes_.clear();
  news_ = false;
}

inline const DirectKey* DirectPeer::find(uint32_t rkey) {
  for (uint32_t n = 0; n < DirectTable::kPlaces; n++) {
    const DirectKey& record = table()->keys[DirectTable::placeOf(rkey, n)];
    if (directLoad(record.key) == rkey) return &record;
  }
  return nullptr;
}

uint8_t* DirectPeer::enter(const Request& request, LocalMaps& maps, Refusal* why) {
  *why = Refusal::kUnpublished;
  const DirectKey* const record = request.rkey != 0 ? find(request.rkey) : nullptr;
  if (record == nullptr) return nullptr;
  const uint32_t file = directLoad(record->file);
  const bool changes = request.right != abi::kAccessRemoteRead;
  const uint64_t shift = directLoad(record->shift);
  uint8_t* const at = maps.findFile(file, request.address + shift, request.length, changes);
  if (at == nullptr) {
    if (!allows(request, *record, file, shift)) return nullptr;  // avoids a useless request
    *why = Refusal::kUnmapped;
    wish(file, changes, false);
    return nullptr;
  }
  const uint32_t touched = request.touched != 0 ? request.touched : static_cast<uint32_t>(request.length);
  access_->announce(request.address + shift, touched, request.rkey, request.peer);
  entered_ = DirectInUse::enter(&access_->inUse, entered_, file);
  if (allows(request, *record, file, shift)) return at;
  leave();
  return nullptr;
}

// Makes the responder's checks on the published records. Called after the announcement, so that the peer cannot
// complete a withdrawal between the check and the access.
inline bool DirectPeer::allows(const Request& request, const DirectKey& record, uint32_t file, uint64_t shift) const {
  bool fits = false;
  uint32_t pd = 0;
  const bool whole = directRead(record, [&](const DirectKey& r) {
    const uint64_t address = directLoad(r.address), length = directLoad(r.length);
    const uint32_t qpn = directLoad(r.qpn);
    pd = directLoad(r.pd);
    fits = directLoad(r.key) == request.rkey && directLoad(r.file) == file && directLoad(r.shift) == shift &&
           (directLoad(r.access) & request.right) != 0 && (qpn == 0 || qpn == request.peer) &&
           request.address >= address && request.length <= length &&
           request.address - address <= length - request.length;
  });
  if (!whole || !fits) return false;
  const DirectQp& qp = table()->qps[request.peer % DirectTable::kQps];
  const bool steady = directRead(qp, [&](const DirectQp& r) {
    fits = directLoad(r.qpn) == request.peer && directLoad(r.peer) == request.qpn && directLoad(r.pd) == pd &&
           (directLoad(r.access) & rightOfQp(request.right)) != 0 &&
           pkeysFit(static_cast<uint16_t>(directLoad(r.pkey)), static_cast<uint16_t>(request.pkey));
  });
  return steady && fits;
}

// This needs no announcement, because what is mapped stays mapped, whatever the peer withdraws.
FilePart DirectPeer::view(const Request& request, LocalMaps& maps, Refusal* why) {
  *why = Refusal::kUnpublished;
  const DirectKey* const record = request.rkey != 0 ? find(request.rkey) : nullptr;
  if (record == nullptr) return {};
  const uint32_t file = directLoad(record->file);
  const uint64_t shift = directLoad(record->shift);
  if (!allows(request, *record, file, shift)) return {};
  FilePart part = maps.takeFile(file, request.address + shift, request.length);
  if (!part.fd.valid()) {
    *why = Refusal::kUnmapped;
    wish(file, false, true);
    return {};
  }
  for (Wish& known : wishes_)
    if (known.file == file) known.descriptor = false;  // the next view needs another one
  return part;
}

bool DirectPeer::wantsDescriptor(uint32_t file) const {
  return std::any_of(wishes_.begin(), wishes_.end(), [&](const Wish& w) { return w.file == file && w.descriptor; });
}

void DirectPeer::wish(uint32_t file, bool writable, bool descriptor) {
  for (Wish& known : wishes_) {
    if (known.file != file) continue;
    if ((writable && !known.writable) || (descriptor && !known.descriptor)) {
      known.writable |= writable;
      known.descriptor |= descriptor;
      known.requested = false;
      news_ = true;
    }
    return;
  }
  if (wishes_.size() >= kMostRequested) return;
  wishes_.push_back({file, writable, false, descriptor});
  news_ = true;
}

void DirectPeer::forgetWish(uint32_t file) {
  wishes_.erase(std::remove_if(wishes_.begin(), wishes_.end(), [&](const Wish& w) { return w.file == file; }),
                wishes_.end());
}

}  // namespace nd
