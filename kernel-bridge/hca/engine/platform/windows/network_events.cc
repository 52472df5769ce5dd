#include "platform/windows/winsock.h"

#include "platform/network_events.h"

#include <netioapi.h>

#include "platform/readiness.h"
#include "platform/windows/descriptor_object.h"

namespace nd {
namespace {

// Windows calls back on its own thread, which sets the signal.
class Changes final : public Object {
 public:
  Changes() : signal_(std::make_shared<Signal>(CreateEventW(nullptr, TRUE, FALSE, nullptr))) {}
  // Waits for a callback that is under way.
  ~Changes() override {
    for (const HANDLE handle : notices_)
      if (handle != nullptr) CancelMibChangeNotify2(handle);
  }

  bool start(NetworkPart part) {
    if (signal_->handle == nullptr) return false;
    if (part == NetworkPart::kRoutes) {
      NotifyRouteChange2(AF_UNSPEC, &Changes::onRoute, this, FALSE, &notices_[0]);
    } else {
      NotifyIpInterfaceChange(AF_UNSPEC, &Changes::onInterface, this, FALSE, &notices_[0]);
      NotifyUnicastIpAddressChange(AF_UNSPEC, &Changes::onAddress, this, FALSE, &notices_[1]);
    }
    return notices_[0] != nullptr;  // Wine 8 accepts the request, returns no handle, and never calls back
  }

  const std::shared_ptr<Signal>& signal() const override { return signal_; }
  uint32_t readyKinds(uint32_t, bool signalled) override { return signalled ? Readiness::kReadable : 0u; }
  bool waits(uint32_t) const override { return true; }

  bool take() {
    if (WaitForSingleObject(signal_->handle, 0) != WAIT_OBJECT_0) return false;
    ResetEvent(signal_->handle);
    return true;
  }

 private:
  static void WINAPI onInterface(void* self, MIB_IPINTERFACE_ROW*, MIB_NOTIFICATION_TYPE) { changed(self); }
  static void WINAPI onAddress(void* self, MIB_UNICASTIPADDRESS_ROW*, MIB_NOTIFICATION_TYPE) { changed(self); }
  static void WINAPI onRoute(void* self, MIB_IPFORWARD_ROW2*, MIB_NOTIFICATION_TYPE) { changed(self); }
  static void changed(void* self) { SetEvent(static_cast<Changes*>(self)->signal_->handle); }

  const std::shared_ptr<Signal> signal_;
  HANDLE notices_[2] = {nullptr, nullptr};
};

}  // namespace

bool NetworkEvents::open(NetworkPart part) {
  auto changes = std::make_unique<Changes>();
  if (!changes->start(part)) return false;
  fd_ = descriptorOf(std::unique_ptr<Object>(std::move(changes)));
  return true;
}

bool NetworkEvents::take() { return static_cast<Changes*>(objectOf(fd_.get()))->take(); }

}  // namespace nd
