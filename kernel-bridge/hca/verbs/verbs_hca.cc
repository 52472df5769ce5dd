// Opens and closes the RDMA devices of a kernel, and has their counters and the event thread, which sleeps until a
// device or the connection manager has something to report.
#include "verbs/verbs_hca.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nd::verbs {

namespace {

// The meaning of a descriptor: one of these, or a device's number above two bits, 1 for completions and 2 for
// asynchronous events.
constexpr uint64_t kStopTag = 0, kCmTag = 4 << 2;
constexpr uint64_t kTagBits = 2;
// Device numbers as tags start after those.
constexpr uint64_t kDeviceTag = uint64_t{1} << 32;

bool notBlocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0; }

}  // namespace

VerbsHca::VerbsHca(const Library& lib, Waker* waker) : lib_(lib), events_(std::make_shared<Events>(waker)) {
  devices_.reserve(kMostDevices);  // read by the event thread while it grows
}

VerbsHca::~VerbsHca() { close(); }

std::unique_ptr<VerbsHca> VerbsHca::open(Waker* waker, std::string* why) {
  const Library* const lib = library(why);
  if (lib == nullptr) return nullptr;
  std::unique_ptr<VerbsHca> host(new VerbsHca(*lib, waker));
  return host->start(why) ? std::move(host) : nullptr;
}

bool VerbsHca::start(std::string* why) {
  cm_ = lib_.rdma_create_event_channel();
  if (cm_ == nullptr) {
    const int error = errno;
    *why = std::string("/dev/infiniband/rdma_cm cannot be opened (") + std::strerror(error) + ")" +
           openingHelp(error, "rdma_ucm");
    return false;
  }
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !stop_.valid() || !notBlocking(cm_->fd) || !watch(stop_.get(), kStopTag) ||
      !watch(cm_->fd, kCmTag)) {
    *why = std::string("its descriptors cannot be created or watched (") + std::strerror(errno) + ")";
    lib_.rdma_destroy_event_channel(std::exchange(cm_, nullptr));
    return false;
  }
  open_ = true;
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "nd-verbs");
  return true;
}

bool VerbsHca::watch(int fd, uint64_t tag) {
  if (tag != kStopTag && tag != kCmTag) {
    if (!notBlocking(fd)) return false;
    tag |= kDeviceTag;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void VerbsHca::unwatch(int fd) {
  epoll_event event{};
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &event);
}

void VerbsHca::run() {
  for (;;) {
    epoll_event ready[16];
    const int count = epoll_wait(epoll_.get(), ready, 16, -1);
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = ready[i].data.u64;
      if (tag == kStopTag) return;
      if (tag == kCmTag) {
        serveCm();
        continue;
      }
      Device* const device = devices_[((tag & ~kDeviceTag) >> kTagBits) - 1];
      std::lock_guard<std::mutex> lock(device->threads);
      if (device->context == nullptr) continue;
      if ((tag & 3) == 1) {
        serveCompletions(*device);
      } else {
        serveAsync(*device);
      }
    }
    if (count < 0 && errno != EINTR) return;
  }
}

void VerbsHca::serveCompletions(Device& device) {
  ibv_cq* cq;
  void* context;
  while (lib_.ibv_get_cq_event(device.channel, &cq, &context) == 0) {
    const Handle handle = handleIn(context);
    lib_.ibv_ack_cq_events(cq, 1);
    device.comEvents.fetch_add(1, std::memory_order_relaxed);
    if (CqObject* own = Tables::all().cqs.at(handle)) drain(*own, handle, true);
  }
}

void VerbsHca::counters(std::vector<std::pair<const char*, uint64_t>>* out) const {
  uint64_t posts = 0, calls = 0, polled = 0, events = 0;
  for (const Device* device : devices_) {
    posts += device->posts;
    calls += device->postCalls;
    polled += device->polled;
    events += device->comEvents;
  }
  *out = {{"verbs_posts", posts}, {"verbs_post_calls", calls}, {"verbs_completions", polled}, {"verbs_events", events}};
}

void VerbsHca::close() {
  if (!open_) return;
  open_ = false;
  events_->close();
  std::vector<Handle> ids;
  {
    std::lock_guard<std::mutex> lock(idMutex_);
    ids = cmIds_;
  }
  // Ids are closed before queue pairs, so that their peers are notified. The event thread acknowledges the events that
  // these calls wait for.
  for (const Handle id : ids) cmDestroy(id);
  for (Device* device : devices_) closeDevice(*device);
  const uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) < 0) {
    // An eventfd that was never written to accepts it.
  }
  if (thread_.joinable()) thread_.join();
  lib_.rdma_destroy_event_channel(cm_);
}

}  // namespace nd::verbs
