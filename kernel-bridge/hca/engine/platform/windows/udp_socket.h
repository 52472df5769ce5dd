// A UDP socket as a descriptor.
#pragma once
#include "platform/windows/winsock.h"

#include <atomic>

#include "platform/windows/descriptor_object.h"

// Constants newer than some headers: Windows 10, 2004.
#ifndef UDP_SEND_MSG_SIZE
#define UDP_SEND_MSG_SIZE 2
#endif
#ifndef UDP_RECV_MAX_COALESCED_SIZE
#define UDP_RECV_MAX_COALESCED_SIZE 3
#endif
#ifndef UDP_COALESCED_INFO
#define UDP_COALESCED_INFO 3
#endif

namespace nd {

class UdpSocket final : public Object {
 public:
  UdpSocket();
  ~UdpSocket() override;
  // Returns 0 or an errno.
  int open(int family);
  bool setInt(int level, int option, int value) {
    return setsockopt(socket, level, option, reinterpret_cast<const char*>(&value), sizeof value) == 0;
  }

  const std::shared_ptr<Signal>& signal() const override { return signal_; }
  uint32_t readyKinds(uint32_t kinds, bool signalled) override;
  bool waits(uint32_t kinds) const override;
  // Must be called when a call has found no datagram. Windows signals later ones.
  void foundNothing() { filled_.store(false, std::memory_order_relaxed); }

  SOCKET socket = INVALID_SOCKET;
  LPFN_WSASENDMSG sendMessage = nullptr;
  LPFN_WSARECVMSG receiveMessage = nullptr;
  bool cuts = false;         // Windows segments messages (UDP_SEND_MSG_SIZE)
  bool takesClasses = true;  // accepts a traffic class with a message

 private:
  std::shared_ptr<Signal> signal_;
  std::atomic<bool> filled_{false};  // a datagram was signalled, and no call has found none since
};

inline UdpSocket& udpOf(Descriptor descriptor) { return *static_cast<UdpSocket*>(objectOf(descriptor)); }

}  // namespace nd
