// The devices that one soft kernel has open, their commands, and its connections. Everything runs on the kernel's
// thread except the event thread, which sleeps until a device or the connection manager has something to report.
#pragma once
#include <thread>

#include "objects/hca_commands.h"
#include "platform/unique_fd.h"
#include "verbs/data_path.h"

namespace nd::verbs {

// The handle of an object, which libibverbs stores as the object's context.
inline Handle handleIn(void* context) { return static_cast<Handle>(reinterpret_cast<uintptr_t>(context)); }

inline bool powerOfTwo(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Current state of a port.
struct PortInfo {
  ibv_port_attr attributes{};
  std::vector<ibv_gid_entry> gids;
  std::vector<uint16_t> pkeys;
};

// The parts of a connection's queue pair attributes that librdmacm has negotiated.
struct CmAttributes {
  uint32_t pathMtu = 0, destinationQpn = 0, receivePsn = 0, sendPsn = 0, pkeyIndex = 0, ackTimeout = 0, flowLabel = 0;
  uint8_t hopLimit = 0, trafficClass = 0;
};

struct CmAddress {
  Gid gid;
  uint16_t port = 0;
  uint32_t scopeId = 0;
};

struct PrivateData {
  const uint8_t* data = nullptr;
  size_t length = 0;
};

struct CmParameters : PrivateData {
  uint32_t qpn = 0;
  uint8_t responderResources = 0, initiatorDepth = 0, retryCount = 0, rnrRetryCount = 0;
  bool srq = false;
};

class VerbsHca final : public HcaCommands {
 public:
  static constexpr size_t kMostDevices = 4096;  // a device that reappears is counted again
  // If it returns null, `why` gives the reason as part of a sentence.
  static std::unique_ptr<VerbsHca> open(Waker* waker, std::string* why);
  ~VerbsHca();

  // ── Devices. Numbers are never used again.
  std::vector<std::string> deviceNames() const;
  Device* openDevice(const std::string& name, std::string* why);
  // Closes a device and ends all its objects. Their owners later destroy them by the same commands as before.
  void closeDevice(Device& device);
  bool queryPort(Device& device, uint32_t port, PortInfo* out);
  Device* device(uint32_t number);

  // ── Commands. An owner is the number of a device.
  Status allocatePd(Owner device, Handle* pd) override;
  Status deallocatePd(Handle pd) override;
  Status registerMr(Handle pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                    uint32_t* rkey) override;
  Status deregisterMr(Handle pd, uint32_t lkey) override;
  Status allocateMw(Handle pd, Handle* mw, uint32_t* rkey) override;
  Status deallocateMw(Handle mw) override;
  Status createCq(Owner device, uint64_t ring, uint64_t bytes, uint32_t entries, Handle* cq) override;
  Status resizeCq(Handle cq, uint64_t ring, uint64_t bytes, uint32_t entries) override;
  Status destroyCq(Handle cq) override;
  Status armCq(Handle cq, bool solicitedOnly) override { return verbs::armCq(cq, solicitedOnly); }
  Status listenCq(Handle cq) override;
  // `pkeyTable` is the number of the physical port.
  Status createQp(const QpCreate& create, Handle* qp, uint32_t* qpn) override;
  Status modifyQp(Handle qp, uint32_t mask, const QpAttributes& attributes) override;
  Status connectQp(Handle qp, const ConnectMasks& masks, const QpAttributes& attributes, Handle connection) override;
  Status queryQp(Handle qp, QpAttributes* out) override;
  Status destroyQp(Handle qp) override;
  Status createSrq(const SrqCreate& create, Handle* srq) override;
  Status modifySrq(Handle srq, uint32_t mask, const SrqAttributes& attributes) override;
  Status querySrq(Handle srq, SrqAttributes* out) override;
  Status destroySrq(Handle srq) override;
  Status createAh(Handle pd, const Path& path, uint32_t pathMtu, Handle* ah) override;
  Status destroyAh(Handle ah) override;
  // Attaches only the queue pair, whatever the interface. cmJoin() joins the group on the network.
  Status attachMulticast(Handle qp, const Gid& group, uint32_t interface) override;
  Status detachMulticast(Handle qp, const Gid& group, uint32_t interface) override;

  // ── Connections, which only real HCAs have here, by the handles of their ids.
  Status cmCreate(bool datagrams, Handle* out);
  Status cmDestroy(Handle id);
  Status cmBind(Handle id, const CmAddress& local, bool shared, uint16_t* port);
  Status cmResolve(Handle id, const CmAddress& local, const CmAddress& peer, uint32_t timeoutMs);
  Status cmResolveRoute(Handle id, uint32_t timeoutMs);
  Status cmSetOptions(Handle id, uint32_t ackTimeout, uint32_t trafficClass);
  Status cmListen(Handle id, uint32_t backlog);
  Status cmConnect(Handle id, const CmParameters& parameters);
  Status cmEstablish(Handle id);
  Status cmAccept(Handle id, const CmParameters& parameters);
  Status cmReject(Handle id, const PrivateData& data);
  Status cmDisconnect(Handle id);
  Status cmNotify(Handle id);
  Status cmJoin(Handle id, const CmAddress& group);
  // Closes the files that librdmacm has open for a removed device to which the id is bound. librdmacm itself keeps them
  // until it next searches for devices, and keeps those of the last device forever. rdma_get_devices would start a
  // search, but also opens all other devices.
  Status cmCloseRemoved(Handle id);
  // `device`: 0 if the id is not bound to an open device.
  Status cmAddresses(Handle id, CmAddress* local, CmAddress* peer, Owner* device);
  Status cmAttributes(Handle id, CmAttributes* out);

  Events& events() { return *events_; }
  void counters(std::vector<std::pair<const char*, uint64_t>>* out) const;
  void close();

 private:
  VerbsHca(const Library& lib, Waker* waker);
  bool start(std::string* why);
  void run();
  void serveCm();
  void serveCompletions(Device& device);
  void serveAsync(Device& device);
  // Returns false, with errno, if the descriptor cannot be monitored.
  [[nodiscard]] bool watch(int fd, uint64_t tag);
  void unwatch(int fd);
  bool probe(Device& device, std::string* why);
  Status moveQp(QpObject& qp, uint32_t mask, const QpAttributes& attributes);
  Status toEnd(QpObject& qp, uint32_t state);
  Status changeGroup(Handle qp, const Gid& group, bool attach);
  int sgidIndex(Device& device, uint32_t port, const Gid& source);
  bool fillAh(Device& device, uint32_t port, const Path& path, ibv_ah_attr* out);
  rdma_cm_id* idOf(Handle id) const;

  const Library& lib_;
  std::shared_ptr<Events> events_;
  std::vector<Device*> devices_;  // never freed (objects.h)
  rdma_event_channel* cm_ = nullptr;
  std::vector<Handle> cmIds_;
  std::mutex idMutex_;  // protects cmIds_: the event thread adds those of requests
  UniqueFd epoll_, stop_;
  std::thread thread_;
  bool open_ = false;
};

// Ends the registrations in a range of memory that its thread is about to release.
void endRegistrations(uint64_t range);

}  // namespace nd::verbs
