// The commands of an HCA, by which the soft kernel's HCA driver manages its objects: the engine (engine/engine.h)
// executes them for the software HCA, verbs/verbs_hca.h for real ones. addon/command_face.h has them for JavaScript.
#pragma once
#include "objects/parameters.h"

namespace nd {

// Each command is short and returns a status; none blocks. What it returns besides is set on success only. Every
// destroy returns kDeviceBusy while others use the object. Handles are the HCA's own.
class HcaCommands {
 public:
  // To whom a PD or a CQ, and what is created with it, belongs: with the software HCA a soft kernel (KernelId), with
  // real HCAs a device.
  using Owner = uint32_t;

  virtual Status allocatePd(Owner owner, Handle* pd) = 0;
  virtual Status deallocatePd(Handle pd) = 0;
  virtual Status registerMr(Handle pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                            uint32_t* rkey) = 0;
  virtual Status deregisterMr(Handle pd, uint32_t lkey) = 0;  // kDeviceBusy: windows are bound
  virtual Status allocateMw(Handle pd, Handle* mw, uint32_t* rkey) = 0;
  virtual Status deallocateMw(Handle mw) = 0;  // unbinds
  virtual Status createCq(Owner owner, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries, Handle* cq) = 0;
  // kBufferOverflow: the completions that wait do not fit into the new ring.
  virtual Status resizeCq(Handle cq, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries) = 0;
  virtual Status destroyCq(Handle cq) = 0;
  // Requests one event on the next matching completion, counting those not yet taken by the consumer and not yet
  // announced (winverbs §1.3 Notify, networkdirect §6.6). kBufferOverflow: the CQ has overrun.
  virtual Status armCq(Handle cq, bool solicitedOnly) = 0;
  // Reports every event of the CQ to the kernel (HcaEvent::cq) as long as the CQ lives; one that was kept comes at
  // once.
  virtual Status listenCq(Handle cq) = 0;
  virtual Status createQp(const QpCreate& request, Handle* qp, uint32_t* qpn) = 0;
  // To ERROR and RESET: what was posted has been flushed, or is gone, when this returns.
  virtual Status modifyQp(Handle qp, uint32_t mask, const QpAttributes& attributes) = 0;
  // From RESET or INIT by INIT and RTR to RTS; each step applies what its mask names. Ends at the first that fails,
  // with its status. `connection`: of real HCAs the connection whose negotiated attributes apply (Host::cmCreate).
  virtual Status connectQp(Handle qp, const ConnectMasks& masks, const QpAttributes& attributes, Handle connection) = 0;
  virtual Status queryQp(Handle qp, QpAttributes* attributes) = 0;
  virtual Status destroyQp(Handle qp) = 0;
  // Messages use the WQEs of a shared receive queue in the order in which they begin, whichever QP they are for.
  virtual Status createSrq(const SrqCreate& request, Handle* srq) = 0;
  // The limit raises SrqEvent::kLimit once, at once if fewer WQEs are there already. kBufferOverflow: the WQEs do not
  // fit into the new ring.
  virtual Status modifySrq(Handle srq, uint32_t mask, const SrqAttributes& attributes) = 0;
  virtual Status querySrq(Handle srq, SrqAttributes* attributes) = 0;
  virtual Status destroySrq(Handle srq) = 0;
  // An address handle: where a UD send goes, named by its WQE. `pathMtu`: bytes that a datagram may have, 256..4096.
  virtual Status createAh(Handle pd, const Path& path, uint32_t pathMtu, Handle* ah) = 0;
  virtual Status destroyAh(Handle ah) = 0;
  // Multicast for UD QPs, on an interface (its index). kInvalidDeviceRequest: not a UD QP.
  virtual Status attachMulticast(Handle qp, const Gid& group, uint32_t interface) = 0;
  virtual Status detachMulticast(Handle qp, const Gid& group, uint32_t interface) = 0;

 protected:
  ~HcaCommands() = default;
};

}  // namespace nd
