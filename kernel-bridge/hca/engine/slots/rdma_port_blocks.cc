#include "slots/rdma_port_blocks.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "platform/local_socket.h"
#include "platform/os.h"
#include "slots/host_events.h"

namespace nd {
namespace {

constexpr int64_t kLongestPauseMs = 32;
const char kPrefix[] = "port";  // prefix of the names of ports and of blocks

std::string blockPrefix(uint32_t service) {
  char text[32];
  std::snprintf(text, sizeof text, "ports/%04x/", service);
  return text;
}

std::string blockName(uint32_t service, uint16_t first) { return blockPrefix(service) + std::to_string(first); }

// Returns false if no reply arrives in time. If the connection ends instead, the reply is kNoOwner.
bool receiveReply(Descriptor connection, int64_t deadline, PortReply* reply) {
  const auto left = [&] { return static_cast<uint64_t>(std::max<int64_t>(deadline - monotonicMs(), 0)); };
  while (waitReadable(&connection, 1, left() * 1'000'000) == 0)
    if (left() == 0) return false;
  uint8_t bytes[Frame::kHeaderBytes + sizeof *reply + 1];
  const int64_t n = receiveLocal(connection, bytes, sizeof bytes);
  Frame frame;
  if (n > 0 && frame.decode(bytes, static_cast<uint32_t>(n)) && frame.kind == FrameKind::kPortReply &&
      frame.bodyLength == sizeof *reply)
    std::memcpy(reply, frame.body, sizeof *reply);
  else reply->verdict = PortVerdict::kNoOwner;
  return true;
}

}  // namespace

int64_t monotonicMs() { return static_cast<int64_t>(monotonicNs() / 1'000'000); }

PortReply requestPort(LocalNames& names, const PortRequest& request, const Gid* address, int64_t deadline,
                      int* refused) {
  Frame frame;
  frame.kind = FrameKind::kPortRequest;
  if (address != nullptr) frame.meta.destination = *address;
  frame.body = reinterpret_cast<const uint8_t*>(&request);
  frame.bodyLength = sizeof request;
  PortReply reply;
  for (int64_t pause = 0;; pause = std::clamp<int64_t>(2 * pause, 1, kLongestPauseMs)) {
    if (pause != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(std::clamp<int64_t>(deadline - monotonicMs(), 0, pause)));
    UniqueFd connection;
    const int error = names.connect(blockName(request.service, request.first), &connection, nullptr);
    if (error == ECONNREFUSED || error == EACCES) return {PortVerdict::kNoOwner, request.port};
    if (isDescriptorLack(error)) return *refused = error, PortReply{};
    const bool answered =
        error == 0 && sendFrame(connection.get(), frame) == 0 && receiveReply(connection.get(), deadline, &reply);
    if (!answered || monotonicMs() >= deadline) return {};
    // An owner that ends releases the name. An owner that only closes connections is queried less and less often.
    if (reply.verdict != PortVerdict::kNoOwner) return reply;
  }
}

uint32_t RdmaPortBlocks::Block::pick() {
  const uint64_t from = free() >> next << next;
  const auto index = static_cast<uint32_t>(__builtin_ctzll(from != 0 ? from : free()));
  next = (index + 1) % kPorts;
  return index;
}

RdmaPortBlocks::Block* RdmaPortBlocks::find(uint32_t service, uint16_t port) {
  const auto found = blocks_.find(keyOf(service, firstOf(port)));
  return found == blocks_.end() ? nullptr : &found->second;
}

Status RdmaPortBlocks::take(uint32_t service, uint32_t id, uint16_t* port) {
  // Successive ports usually belong to one block, so the other blocks are checked only once per block.
  if (Block* last = find(service, lastTaken_); last != nullptr && last->free() != 0) {
    *port = static_cast<uint16_t>(firstOf(lastTaken_) + last->pick());
    return Status::kSuccess;
  }
  for (auto i = blocks_.lower_bound(keyOf(service, 0)); i != blocks_.end() && i->first >> 16 == service; ++i) {
    if (i->second.free() == 0) continue;
    *port = static_cast<uint16_t>((i->first & 0xffff) + i->second.pick());
    lastTaken_ = *port;
    return Status::kSuccess;
  }
  const auto had = names_.list(blockPrefix(service));
  if (!had) return Status::kTooManyOpenedFiles;
  const uint32_t start = randomStart();
  for (uint32_t n = 0; n < kBlocks; n++) {
    const uint16_t first = nth(start, n);
    if (std::find(had->begin(), had->end(), std::to_string(first)) != had->end()) continue;
    const Status status = claim(service, first, id);
    if (status == Status::kSuccess) return take(service, id, port);
    if (status != Status::kAddressAlreadyExists) return status;
  }
  return Status::kTooManyAddresses;
}

// Claims a block that has a free port. A process that claims one of its ports by number binds first and then looks for
// the block's name. This function binds first and then looks for such names. Of two concurrent claims, at least one
// therefore sees the other.
Status RdmaPortBlocks::claim(uint32_t service, uint16_t first, uint32_t id) {
  if (has(service, first)) return Status::kAddressAlreadyExists;
  Block block;
  std::vector<std::string> others;
  const int error = names_.claim(blockName(service, first), kPrefix, &block.listener, &others);
  if (error != 0) return error == EADDRINUSE ? Status::kAddressAlreadyExists : statusOfLack(error);
  char port[16];
  std::snprintf(port, sizeof port, "/%04x/", service);
  for (const std::string& name : others) {
    if (name.compare(0, std::strlen(port), port) != 0) continue;
    const auto number = static_cast<uint16_t>(std::strtoul(name.c_str() + std::strlen(port), nullptr, 10));
    if (firstOf(number) == first) block.lent |= bit(number);
  }
  if (block.free() == 0) return Status::kAddressAlreadyExists;
  if (!readiness_.add(block.listener.get(), Readiness::kReadable, eventTag(EventKind::kClaim, id)))
    return Status::kInsufficientResources;
  block.id = id;
  block.next = random_() % kPorts;
  blocks_.emplace(keyOf(service, first), std::move(block));
  return Status::kSuccess;
}

void RdmaPortBlocks::use(uint32_t service, uint16_t port) {
  if (Block* block = find(service, port)) block->used |= bit(port);
}

// Marks a port as free. The last block is kept for the next connection.
void RdmaPortBlocks::giveBack(uint32_t service, uint16_t port) {
  const auto found = blocks_.find(keyOf(service, firstOf(port)));
  if (found == blocks_.end()) return;
  found->second.used &= ~bit(port);
  const auto first = blocks_.lower_bound(keyOf(service, 0));
  const auto second = std::next(first);
  const bool last = second == blocks_.end() || second->first >> 16 != service;
  if (found->second.used == 0 && !last) blocks_.erase(found);
}

void RdmaPortBlocks::lend(uint32_t service, uint16_t port) {
  if (Block* block = find(service, port)) block->lent |= bit(port);
}

uint16_t RdmaPortBlocks::lendAny(uint32_t service, uint16_t first) {
  Block* block = find(service, first);
  if (block == nullptr || block->free() == 0) return 0;
  const uint32_t index = block->pick();
  block->lent |= uint64_t{1} << index;
  return static_cast<uint16_t>(firstOf(first) + index);
}

Descriptor RdmaPortBlocks::listenerOf(uint32_t id) const {
  for (const auto& [key, block] : blocks_)
    if (block.id == id) return block.listener.get();
  return kNoDescriptor;
}

}  // namespace nd
