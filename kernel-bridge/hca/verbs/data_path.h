// The data path between rings and devices. Doorbells pass requests to a device, and polls fetch its completions. It
// runs on programs' threads and on the event thread.
#pragma once
#include "verbs/objects.h"

namespace nd::verbs {

// Handles a doorbell of a queue pair's send or receive queue, or of a shared receive queue (with kSharedBit in the
// handle).
constexpr Handle kSharedBit = 0x80000000;
void ringSends(Handle qp);
void ringReceives(Handle qpOrShared);
// Fetches the completions of this CQ.
void progress(Handle cq);
Status armCq(Handle cq, bool solicitedOnly);
Status armCqBatch(Handle cq, uint32_t count);

// ── For commands and the event thread
// Passes new requests in the rings to the device. The queue pair must be locked.
void postSends(QpObject& qp);
void postReceives(QpObject& qp);
void postShared(SrqObject& srq);
// Moves the queue pair, which must be locked, to ERROR unless it is there already.
void enterError(QpObject& qp);
// Fetches completions. `event`: the device has reported an event. Neither the CQ nor a queue pair may be locked.
void drain(CqObject& cq, Handle handle, bool event = false);
// Does the same as drain() for both CQs of a queue pair, which must be locked. The consequences for this and other
// queue pairs are left to settleLater() or the next drain() of those CQs.
void drainOf(QpObject& qp);
// Called with neither the CQ nor a queue pair locked.
void settleLater(CqObject& cq);
// In ERROR, completes the requests that the device does not have; with `force`, also those that it should have flushed.
// The queue pair must be locked.
void flushHeld(QpObject& qp, bool force = false);
// Arms the device for the event that the CQ, which must be locked, needs.
Status armDevice(CqObject& cq);

}  // namespace nd::verbs
