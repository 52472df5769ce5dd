// Between rings and devices: doorbells hand requests to a device, polls fetch its completions. On programs' threads,
// and on the event thread.
#pragma once
#include "verbs/objects.h"

namespace nd::verbs {

// A doorbell of a queue pair's send queue, of its receive queue, of a shared receive queue (with kSharedBit in the
// handle).
constexpr Handle kSharedBit = 0x80000000;
void ringSends(Handle qp);
void ringReceives(Handle qpOrShared);
// Fetches what has completed on this CQ.
void progress(Handle cq);
Status armCq(Handle cq, bool solicitedOnly);
Status armCqBatch(Handle cq, uint32_t count);

// ── For commands and the event thread
// Hands what is new in the rings to the device; the queue pair is locked.
void postSends(QpObject& qp);
void postReceives(QpObject& qp);
void postShared(SrqObject& srq);
// Moves the queue pair to ERROR, unless that was done; it is locked.
void enterError(QpObject& qp);
// Fetches completions; `event`: the device has reported one. Neither the CQ nor a queue pair is locked.
void drain(CqObject& cq, Handle handle, bool event = false);
// As drain(), of both CQs of a queue pair, which is locked. What follows from it, for other queue pairs, too, is done
// by settleLater() or the next drain() of those CQs.
void drainOf(QpObject& qp);
// Neither the CQ nor a queue pair is locked.
void settleLater(CqObject& cq);
// In ERROR: completes what the device has not and will not; `force`: also what it should have. The queue pair is
// locked.
void flushHeld(QpObject& qp, bool force = false);
// Asks the device for the event that the CQ wants; it is locked.
Status askForEvent(CqObject& cq);

}  // namespace nd::verbs
