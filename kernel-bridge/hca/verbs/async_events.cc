// Asynchronous events of devices (for queue pairs, completion queues, shared receive queues, ports and the device
// itself), reported to the kernel as the HCA's events.
#include <algorithm>
#include <iterator>
#include <utility>

#include "verbs/verbs_hca.h"

namespace nd::verbs {

namespace {

struct QpEventPair {
  int theirs;
  QpEvent ours;
};
constexpr QpEventPair kQpEvents[] = {
    {kEventQpFatal, QpEvent::kFatal},
    {kEventQpReqErr, QpEvent::kFatal},
    {kEventQpAccessErr, QpEvent::kFatal},
    {kEventCommEst, QpEvent::kCommunicationEstablished},
    {kEventSqDrained, QpEvent::kSendQueueDrained},
    {kEventLastWqe, QpEvent::kLastWqe},
};

}  // namespace

void VerbsHca::serveAsync(Device& device) {
  ibv_async_event event;
  while (lib_.ibv_get_async_event(device.context, &event) == 0) {
    HcaEvent out;
    const int type = event.event_type;
    const auto pair = std::find_if(std::begin(kQpEvents), std::end(kQpEvents),
                                   [&](const QpEventPair& p) { return p.theirs == type; });
    Handle handle = 0;
    QpObject *failed = nullptr, *last = nullptr;
    CqObject* overrun = nullptr;
    if (pair != std::end(kQpEvents)) {
      handle = handleIn(event.element.qp->qp_context);
      QpObject* const qp = Tables::all().qps.find(handle);
      // The object cannot be destroyed before the event is acknowledged.
      out = HcaEvent::qp(handle, qp != nullptr ? qp->token : 0, pair->ours, abi::kWcError);
      failed = pair->ours == QpEvent::kFatal ? qp : nullptr;
      last = pair->ours == QpEvent::kLastWqe ? qp : nullptr;
    } else if (type == kEventSrqErr || type == kEventSrqLimit) {
      out = HcaEvent::srq(handleIn(event.element.srq->srq_context),
                          type == kEventSrqErr ? SrqEvent::kFatal : SrqEvent::kLimit);
    } else if (type == kEventCqErr) {
      handle = handleIn(event.element.cq->cq_context);
      overrun = Tables::all().cqs.find(handle);
    } else {
      out = type == kEventDeviceFatal ? HcaEvent::gone() : HcaEvent::port();
    }
    lib_.ibv_ack_async_event(&event);
    if (failed != nullptr) {
      if (failed->failed.exchange(true)) continue;  // a completion has already reported it
      std::lock_guard<std::mutex> lock(failed->mutex);
      if (failed->handle == handle) enterError(*failed);
    }
    if (last != nullptr) {
      std::lock_guard<std::mutex> lock(last->mutex);
      if (last->handle == handle && std::exchange(last->lastWqeReported, true)) continue;
    }
    if (overrun != nullptr) {
      {
        std::lock_guard<std::mutex> lock(overrun->mutex);
        if (overrun->handle == handle && !overrun->ring.dead) overrun->ring.die();
      }
      drain(*overrun, handle);
    }
    if (out.kind != HcaEvent::Kind::kNone) events_->push(device.number, out);
  }
}

}  // namespace nd::verbs
