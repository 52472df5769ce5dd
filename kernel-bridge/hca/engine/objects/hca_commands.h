// The commands by which the soft kernel's HCA driver manages the objects of an HCA. The engine (engine/engine.h)
// executes them for the software HCA, and verbs/verbs_hca.h for RDMA devices. addon/command_face.h exposes them to
// JavaScript.
#pragma once
#include "objects/parameters.h"

namespace nd {

// Each command is short, never blocks, and returns a status. Other results are set only on success. Every destroy
// command returns kDeviceBusy while other objects use the object. Handles are those of the HCA.
class HcaCommands {
 public:
  // The owner of a PD or a CQ, and of everything created with it. For the software HCA it is a soft kernel (KernelId),
  // for RDMA devices a device.
  using Owner = uint32_t;

  virtual Status allocatePd(Owner owner, Handle* pd) = 0;
  virtual Status deallocatePd(Handle pd) = 0;
  virtual Status registerMr(Handle pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                            uint32_t* rkey) = 0;
  virtual Status deregisterMr(Handle pd, uint32_t lkey) = 0;  // kDeviceBusy: windows are bound
  virtual Status allocateMw(Handle pd, Handle* mw, uint32_t* rkey) = 0;
  virtual Status deallocateMw(Handle mw) = 0;  // unbinds
  virtual Status createCq(Owner owner, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries, Handle* cq) = 0;
  // Fails with kBufferOverflow if the waiting completions do not fit into the new ring.
  virtual Status resizeCq(Handle cq, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries) = 0;
  virtual Status destroyCq(Handle cq) = 0;
  // Requests one event for the next matching completion, including completions that are neither taken by the consumer
  // nor announced yet (winverbs §1.3 Notify, networkdirect §6.6). Fails with kBufferOverflow if the CQ has overrun.
  virtual Status armCq(Handle cq, bool solicitedOnly) = 0;
  // Reports every event of the CQ to the kernel (HcaEvent::cq) as long as the CQ exists. A kept event is reported
  // immediately.
  virtual Status listenCq(Handle cq) = 0;
  virtual Status createQp(const QpCreate& request, Handle* qp, uint32_t* qpn) = 0;
  // When a change to ERROR or RESET returns, posted requests have been flushed or discarded.
  virtual Status modifyQp(Handle qp, uint32_t mask, const QpAttributes& attributes) = 0;
  // Moves a QP from RESET or INIT through INIT and RTR to RTS. Each step applies the attributes that its mask names.
  // Stops at the first step that fails and returns its status. `connection`: for RDMA devices, the connection whose
  // negotiated attributes apply (Host::cmCreate).
  virtual Status connectQp(Handle qp, const ConnectMasks& masks, const QpAttributes& attributes, Handle connection) = 0;
  virtual Status queryQp(Handle qp, QpAttributes* attributes) = 0;
  virtual Status destroyQp(Handle qp) = 0;
  // Messages consume the WQEs of a shared receive queue in the order in which they begin, whichever QP they are for.
  virtual Status createSrq(const SrqCreate& request, Handle* srq) = 0;
  // SrqEvent::kLimit is raised once, as soon as fewer WQEs than the limit are left, which may already be the case.
  // Fails with kBufferOverflow if the WQEs do not fit into the new ring.
  virtual Status modifySrq(Handle srq, uint32_t mask, const SrqAttributes& attributes) = 0;
  virtual Status querySrq(Handle srq, SrqAttributes* attributes) = 0;
  virtual Status destroySrq(Handle srq) = 0;
  // An address handle: the destination of a UD send, named in its WQE. `pathMtu`: maximum size of a datagram in bytes,
  // 256..4096.
  virtual Status createAh(Handle pd, const Path& path, uint32_t pathMtu, Handle* ah) = 0;
  virtual Status destroyAh(Handle ah) = 0;
  // Multicast of UD QPs on the interface with the given index. Fails with kInvalidDeviceRequest if the QP is not a UD
  // QP.
  virtual Status attachMulticast(Handle qp, const Gid& group, uint32_t interface) = 0;
  virtual Status detachMulticast(Handle qp, const Gid& group, uint32_t interface) = 0;

 protected:
  ~HcaCommands() = default;
};

}  // namespace nd
