// Answers duplicate requests (IBA 1 §9.7.4; roce-wire §3.3). Executed READs and ATOMICs are kept for that purpose. For
// peers that have agreed on it, lost_responses.h answers the duplicates.
#include "transport/responder.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {
constexpr uint32_t kOftenRepeated = 3;  // the same READ
}

// Keeps the requests that wait for their response, and the newest ones that may have to be answered again.
void Responder::resizeResources(Qp& qp) {
  ReceiveState& rs = qp.rs;
  const uint32_t capacity = std::max(qp.attributes.responderResources, rs.jobs.size());
  if (capacity == rs.resources.capacity()) return;
  Fifo<Resource> kept;
  kept.reset(capacity);
  const uint32_t n = std::min(capacity, rs.resources.size());
  for (uint32_t i = rs.resources.size() - n; i < rs.resources.size(); i++) kept.push(rs.resources[i]);
  rs.resources = std::move(kept);
  Fifo<ResponseJob> jobs;
  jobs.reset(capacity);
  for (; rs.jobs.size(); rs.jobs.pop()) jobs.push(rs.jobs[0]);
  rs.jobs = std::move(jobs);
}

// Returns whether another READ or ATOMIC may come, that is, whether fewer are outstanding than agreed.
bool Responder::hasResource(Qp& qp) {
  ReceiveState& rs = qp.rs;
  const auto full = [&] { return rs.jobs.size() >= qp.attributes.responderResources; };
  // A requester that sends a new request has the responses to the earlier ones, so replays still queued can be dropped.
  while (rs.jobs.size() && full() && rs.jobs[0].replay) rs.jobs.pop();
  return !full();
}

void Responder::remember(Qp& qp, const Resource& resource, const Packet& p) {
  ReceiveState& rs = qp.rs;
  if (rs.resources.full()) rs.resources.pop();
  rs.resources.push(resource);
  rs.expected = wire::psnAdd(rs.expected, resource.packets);
  rs.msn = (rs.msn + 1) & wire::kPsnMask;
  rs.ackPending = rs.unacknowledged = false;  // the response acknowledges everything before it
  rs.jobs.push({resource.atomic, false, resource.psn, resource.address, resource.rkey, resource.length, rs.msn,
                resource.result, false, p.inRing(), p.bth.solicited && LostResponses::agreed(qp)});
  s_.schedule(qp);
}

// The requester has gone back, and will also repeat everything after this request.
void Responder::onDuplicate(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  if (!(p.flags & (wire::kRead | wire::kAtomic))) {
    if (!rs.ackable || wire::psnDiff(p.bth.psn, rs.ackPsn) > 0) return;
    rs.ackPending = true;
    s_.schedule(qp);
    return;
  }
  if (p.length || p.bth.pad) {
    c_.counters.malformed++;
    return;
  }
  if (LostResponses::agreed(qp)) return t_.lostResponses.onRepeated(qp, p);
  ResponseJob job;
  bool found = false;
  for (uint32_t i = 0; i < rs.resources.size() && !found; i++) {
    Resource& r = rs.resources[i];
    const uint32_t offset = (p.bth.psn - r.psn) & wire::kPsnMask;
    if (r.atomic != ((p.flags & wire::kAtomic) != 0) || offset >= r.packets) continue;
    if (r.atomic) {
      job = {true, false, r.psn, 0, 0, 0, rs.msn, r.result, true};
      found = true;
      break;
    }
    const wire::Reth reth = wire::parseReth(p.extension);
    const uint64_t skipped = uint64_t(offset) * qp.mtu;
    found = reth.rkey == r.rkey && reth.address == r.address + skipped && reth.length + skipped <= r.length;
    job = {false, false, p.bth.psn, reth.address, reth.rkey, reth.length, rs.msn, 0, true, p.inRing()};
    if (!found) continue;
    t_.fragments.onRepeated(qp, r, job.psn, job.length, kOftenRepeated);
    for (uint32_t later = i + 1; later < rs.resources.size(); later++)
      rs.resources[later].repeats = 0;  // they follow only because this one does
  }
  if (!found) return;
  while (rs.jobs.size() && wire::psnDiff(rs.jobs[rs.jobs.size() - 1].psn, job.psn) >= 0) rs.jobs.popBack();
  // A half-answered request may begin before this PSN and extend beyond it.
  if (rs.jobs.full()) return;
  if (rs.jobs.size()) {
    ResponseJob& before = rs.jobs[rs.jobs.size() - 1];
    const uint64_t gap = uint64_t((job.psn - before.psn) & wire::kPsnMask) * qp.mtu;
    if (!before.atomic && before.length > gap) before.length = uint32_t(gap);
  }
  rs.jobs.push(job);
  rs.ackPending = false;
  s_.schedule(qp);
}

}  // namespace nd
