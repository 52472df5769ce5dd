// Names of descriptors in the host's epoll set: their kind, and which one.
#pragma once
#include <sys/epoll.h>

#include <cstdint>

namespace nd {

enum class EventKind : uint32_t { kWire, kSlotListener, kInbound, kOutbound, kClaim, kLocalQueue, kPair, kPeerSocket };

inline uint64_t eventTag(EventKind kind, uint32_t id) { return static_cast<uint64_t>(kind) << 32 | id; }
inline EventKind eventKind(uint64_t tag) { return static_cast<EventKind>(tag >> 32); }
inline uint32_t eventId(uint64_t tag) { return static_cast<uint32_t>(tag); }

inline bool watchFd(int epoll, int fd, uint32_t events, EventKind kind, uint32_t id, int operation = EPOLL_CTL_ADD) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = eventTag(kind, id);
  return epoll_ctl(epoll, operation, fd, &event) == 0;
}

// Call before closing a descriptor that another process has, too: its file would stay in the set until that process closes it.
inline void unwatchFd(int epoll, int fd) { epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace nd
