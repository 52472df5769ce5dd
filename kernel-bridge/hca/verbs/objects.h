// The objects of devices. Objects that programs' threads reach by a handle stay allocated after their end
// (slot_table.h), and so do devices.
//
// Lock order within one thread: QpObject or SrqObject, Device::keys, CqObject, then any of Device::qpns,
// Device::bounds, SrqObject::consumer and Events. A call into a device needs the lock of the object concerned.
#pragma once
#include <shared_mutex>
#include <unordered_map>

#include "objects/cq.h"
#include "verbs/event_queue.h"
#include "verbs/rdma_core_library.h"
#include "verbs/slot_table.h"
#include "verbs/program_memory.h"

namespace nd::verbs {

// Extra entries of a device's CQ beyond the ring's, for the marker requests that find the end of a queue.
constexpr int kSpareCqes = 128;
// Minimum number of entries if the device's CQs cannot grow. Their rings can grow up to this size.
constexpr int kFixedCqes = 4096;

struct QpObject;
struct MwObject;

struct MrObject {
  ibv_mr* mr = nullptr;
  Handle pd = 0;
  uint64_t range = 0;
};

struct Device {
  const Library* lib = nullptr;
  uint32_t number = 0;
  std::string name;
  std::shared_ptr<Events> events;
  bool iwarp = false;
  bool resizes = true;  // whether its completion queues can grow
  ibv_device_attr attributes{};
  HcaLimits limits;
  // Changed only under `threads`, which the event thread holds while it serves this device.
  std::mutex threads;
  ibv_context* context = nullptr;  // null: closed
  ibv_comp_channel* channel = nullptr;
  // Held shared while requests that use an address handle are posted. Held exclusively to bind a window, or to destroy
  // a window, a region or an address handle.
  std::shared_mutex keys;
  std::unordered_map<uint32_t, MrObject> regions;  // by lkey
  std::unordered_map<uint32_t, ibv_mw*> windows;   // by index: the upper 24 bits of their rkeys
  std::mutex qpns;
  std::unordered_map<uint32_t, QpObject*> byQpn;
  // Records for each window, by index, whether a bind is in force whose invalidation was neither requested nor
  // reported. rdma_rxe crashes Linux when a window that is not bound is invalidated (rxe_mw.c, rxe_do_invalidate_mw),
  // so such a request is never posted.
  std::mutex bounds;
  std::unordered_map<uint32_t, bool> bound;
  // Sets the flag and returns its previous value. Also returns false if there is no such window.
  bool setBound(uint32_t key, bool now) {
    std::lock_guard<std::mutex> lock(bounds);
    const auto it = bound.find(key >> 8);
    return it != bound.end() && std::exchange(it->second, now);
  }
  std::atomic<uint64_t> posts{0}, postCalls{0}, polled{0}, comEvents{0};
};

struct PdObject {
  std::atomic<Handle> handle{0};
  Device* device = nullptr;
  ibv_pd* pd = nullptr;
  void clear() {
    device = nullptr;
    pd = nullptr;
  }
};

struct QpObject;
// Queue pairs, with the handles they had, whose fetched completions move them to ERROR or end their flush.
using Later = std::vector<std::pair<QpObject*, Handle>>;

struct CqObject {
  std::atomic<Handle> handle{0};
  std::mutex mutex;
  Device* device = nullptr;
  ibv_cq* cq = nullptr;  // null: the device is closed
  Cq ring;
  enum class Arm : uint8_t { kNone, kSolicited, kAny } armed = Arm::kNone;  // the last request made to the device
  bool overrunReported = false;
  Later later;  // fetched by drainOf() but not settled yet
  uint32_t users = 0;
  void clear() {
    device = nullptr;
    later.clear();
    cq = nullptr;
    ring = Cq();
    armed = Arm::kNone;
    overrunReported = false;
    users = 0;
  }
};

struct SrqObject {
  std::atomic<Handle> handle{0};
  std::mutex mutex;
  Device* device = nullptr;
  ibv_srq* srq = nullptr;
  std::shared_ptr<RingMemory> memory;
  uint32_t* header = nullptr;
  uint32_t entries = 0, stride = 0, sge = 0;
  uint32_t done = 0;    // handed to the device
  bool failed = false;  // consumes no more receives
  // Protects `taken` and its word in the header, which are written with the lock of a CQ; `header` changes with both
  // locks.
  std::mutex consumer;
  uint32_t taken = 0;  // completed
  uint32_t users = 0;
  void clear() {
    device = nullptr;
    srq = nullptr;
    memory.reset();
    header = nullptr;
    done = users = taken = 0;
    failed = false;
  }
};

struct QpObject {
  std::atomic<Handle> handle{0};
  std::mutex mutex;
  Device* device = nullptr;
  ibv_qp* qp = nullptr;  // null: the device is closed
  std::shared_ptr<RingMemory> memory;
  uint32_t* header = nullptr;
  uint32_t sendEntries = 0, sendStride = 0, sendSge = 0, maxInline = 0, receiveEntries = 0, receiveStride = 0,
           receiveSge = 0;
  uint32_t type = 0, token = 0, qpn = 0, physicalPort = 1;
  Handle pd = 0;
  CqObject *sendCq = nullptr, *receiveCq = nullptr;
  SrqObject* srq = nullptr;
  uint32_t sendDone = 0, receiveDone = 0;  // handed to the device, or flushed
  uint32_t failStatus = 0;                 // status of the first request not handed to the device; 0: it was flushed
  bool errorEntered = false, markerPosted = false;
  bool lastWqeReported = false;  // in ERROR: it consumes no more receives of its SRQ
  QpAttributes attributes;
  // Written only with the lock of a CQ.
  std::atomic<uint32_t> state{abi::kQpsReset};
  std::atomic<int32_t> receivesOut{0};    // handed to the device but not completed; excludes those of a shared queue
  std::atomic<uint32_t> sendSeen{0};      // the index after that of the latest completion of a send
  std::atomic<bool> sendsDrained{false};  // in ERROR: all sends handed to the device have completed
  // In ERROR: set if the device did not flush the requests, which were therefore completed without it.
  std::atomic<bool> sendsForced{false}, receivesForced{false};
  std::atomic<bool> failed{false};  // a request has failed, as opposed to being flushed

  uint32_t* sendWqe(uint32_t index) const {
    return header + (abi::kQpHeaderBytes + size_t{index & (sendEntries - 1)} * sendStride) / 4;
  }
  uint32_t* receiveWqe(uint32_t index) const {
    return header + (abi::kQpHeaderBytes + size_t{sendEntries} * sendStride +
                     size_t{index & (receiveEntries - 1)} * receiveStride) /
                        4;
  }
  void publish(uint32_t newState) {
    state.store(newState);
    storeWord(header + abi::kQpState, newState);
  }
  void clear() {
    device = nullptr;
    qp = nullptr;
    memory.reset();
    header = nullptr;
    sendCq = receiveCq = nullptr;
    srq = nullptr;
    sendDone = receiveDone = failStatus = 0;
    errorEntered = markerPosted = lastWqeReported = false;
    attributes = QpAttributes();
    state = abi::kQpsReset;
    receivesOut = 0;
    sendSeen = 0;
    sendsDrained = failed = sendsForced = receivesForced = false;
  }
};

struct AhObject {
  std::atomic<Handle> handle{0};
  Device* device = nullptr;
  ibv_ah* ah = nullptr;
  Handle pd = 0;
  uint32_t pathMtu = 0;
  void clear() {
    device = nullptr;
    ah = nullptr;
  }
};

struct MwObject {
  std::atomic<Handle> handle{0};
  Device* device = nullptr;
  ibv_mw* mw = nullptr;
  Handle pd = 0;
  void clear() {
    device = nullptr;
    mw = nullptr;
  }
};

struct CmObject {
  std::atomic<Handle> handle{0};
  rdma_cm_id* id = nullptr;
  void clear() { id = nullptr; }
};

// The objects of the whole process.
struct Tables {
  static Tables& all();
  SlotTable<PdObject> pds;
  SlotTable<CqObject> cqs;
  SlotTable<SrqObject> srqs;
  SlotTable<QpObject> qps;
  SlotTable<AhObject> ahs;
  SlotTable<MwObject> mws;
  SlotTable<CmObject> cms;
  // Keeps a device allocated, because objects that their owners have not destroyed yet refer to it.
  void keep(Device* device);

 private:
  std::mutex mutex_;
  std::vector<Device*> devices_;
};

// Returns the NTSTATUS for an errno.
Status statusOf(int error);
// Returns the status of an event of librdmacm: unchanged if it is the peer's reason (0 or more), otherwise the NTSTATUS
// for the errno, which is negative as well.
int32_t statusOfEvent(int status);
// Returns the cure, as part of a sentence, for this errno on opening a device file that a kernel module creates.
std::string openingHelp(int error, const char* module);
// Returns the device's access flags for WV_ACCESS_* bits.
int accessOf(uint32_t access);

}  // namespace nd::verbs
