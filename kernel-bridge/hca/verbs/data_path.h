// The data path between rings and devices: doorbells pass requests to a device, polls fetch its completions. Runs on
// programs' threads and on the event thread.
#pragma once
#include "verbs/objects.h"

namespace nd::verbs {

// A doorbell of a queue pair's send queue, of its receive queue, or of a shared receive queue (with kSharedBit in the
// handle).
constexpr Handle kSharedBit = 0x80000000;
void ringSends(Handle qp);
void ringReceives(Handle qpOrShared);
// Fetches the completions of this CQ.
void progress(Handle cq);
Status armCq(Handle cq, bool solicitedOnly);
Status armCqBatch(Handle cq, uint32_t count);

// ── For commands and the event thread
// Hands what is new in the rings to the device; the queue pair is locked.
void postSends(QpObject& qp);
void postReceives(QpObject& qp);
void postShared(SrqObject& srq);
// Moves the queue pair, which is locked, to ERROR unless it is there already.
void enterError(QpObject& qp);
// Fetches completions. `event`: the device has reported an event. Called with neither the CQ nor a queue pair locked.
void drain(CqObject& cq, Handle handle, bool event = false);
// As drain(), for both CQs of a queue pair, which is locked. The consequences for this and other queue pairs are left
// to settleLater() or the next drain() of those CQs.
void drainOf(QpObject& qp);
// Called with neither the CQ nor a queue pair locked.
void settleLater(CqObject& cq);
// In ERROR, completes the requests that the device does not have; with `force`, also those that it should have flushed.
// The queue pair is locked.
void flushHeld(QpObject& qp, bool force = false);
// Arms the device for the event that the CQ, which is locked, needs.
Status armDevice(CqObject& cq);

}  // namespace nd::verbs
