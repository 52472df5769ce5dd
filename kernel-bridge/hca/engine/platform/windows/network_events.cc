#include "platform/windows/sockets.h"

#include "platform/network_events.h"

#include <netioapi.h>

#include "platform/readiness.h"
#include "platform/windows/object.h"

namespace nd {
namespace {

// The event is signalled by the system: by a request for the next change of IPv4, and by callbacks for both families. Wine 8 never
// calls back.
class Changes final : public Object {
 public:
  explicit Changes(NetworkPart part) : part_(part), signal_(std::make_shared<Signal>(CreateEventW(nullptr, TRUE, FALSE, nullptr))) {}
  ~Changes() override {
    for (const HANDLE handle : notices_)
      if (handle != nullptr) CancelMibChangeNotify2(handle);
    if (pending_ && CancelIPChangeNotify(next_.get()) != 0) next_.release();  // the system may still write to it
  }

  bool start() {
    if (signal_->handle == nullptr) return false;
    if (part_ == NetworkPart::kInterfaces) {
      NotifyIpInterfaceChange(AF_UNSPEC, &Changes::onInterface, this, FALSE, &notices_[0]);
      NotifyUnicastIpAddressChange(AF_UNSPEC, &Changes::onAddress, this, FALSE, &notices_[1]);
    } else {
      NotifyRouteChange2(AF_UNSPEC, &Changes::onRoute, this, FALSE, &notices_[0]);
    }
    askNext();
    return true;
  }

  const std::shared_ptr<Signal>& signal() const override { return signal_; }
  uint32_t look(uint32_t, bool signalled) override { return signalled ? Readiness::kReadable : 0u; }
  bool waits(uint32_t) const override { return true; }

  bool take() {
    if (WaitForSingleObject(signal_->handle, 0) != WAIT_OBJECT_0) return false;
    ResetEvent(signal_->handle);
    DWORD bytes = 0;
    if (pending_ && GetOverlappedResult(nullptr, next_.get(), &bytes, FALSE) != 0) askNext();
    return true;
  }

 private:
  void askNext() {
    HANDLE unused = nullptr;
    *next_ = {};
    next_->hEvent = signal_->handle;
    const DWORD error = part_ == NetworkPart::kInterfaces ? NotifyAddrChange(&unused, next_.get()) : NotifyRouteChange(&unused, next_.get());
    pending_ = error == ERROR_IO_PENDING;
  }
  static void WINAPI onInterface(void* self, MIB_IPINTERFACE_ROW*, MIB_NOTIFICATION_TYPE) { changed(self); }
  static void WINAPI onAddress(void* self, MIB_UNICASTIPADDRESS_ROW*, MIB_NOTIFICATION_TYPE) { changed(self); }
  static void WINAPI onRoute(void* self, MIB_IPFORWARD_ROW2*, MIB_NOTIFICATION_TYPE) { changed(self); }
  static void changed(void* self) { SetEvent(static_cast<Changes*>(self)->signal_->handle); }

  const NetworkPart part_;
  const std::shared_ptr<Signal> signal_;
  HANDLE notices_[2] = {nullptr, nullptr};
  std::unique_ptr<OVERLAPPED> next_ = std::make_unique<OVERLAPPED>();
  bool pending_ = false;
};

}  // namespace

bool NetworkEvents::open(NetworkPart part) {
  auto changes = std::make_unique<Changes>(part);
  if (!changes->start()) return false;
  fd_ = descriptorOf(std::unique_ptr<Object>(std::move(changes)));
  return true;
}

bool NetworkEvents::take() { return static_cast<Changes*>(objectOf(fd_.get()))->take(); }

}  // namespace nd
