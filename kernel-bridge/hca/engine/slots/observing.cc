#include "slots/observing.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "platform/local_names.h"
#include "platform/mapping.h"
#include "platform/pages.h"
#include "platform/readiness.h"
#include "slots/frame.h"
#include "slots/other_dialects.h"
#include "slots/slots.h"

namespace nd {
namespace {

// The longest text that a client accepts. Kernels write shorter texts, because they list a limited number of objects.
// Everything that a client accepts costs memory, and parsing the JSON costs many times as much.
constexpr uint64_t kMostBytes = 2u << 20;

void sendText(Descriptor connection, const void* text, uint64_t bytes) {
  ObservedText body;
  Pages pages;
  int error = 0;
  if (bytes != 0 && allocatePages(bytes, &pages, &error) == Status::kSuccess) {
    std::memcpy(reinterpret_cast<void*>(pages.base), text, bytes);
    sealPages(pages.fd.get(), false);
    body = {bytes, pages.length};
  }
  Frame frame;
  frame.kind = FrameKind::kObserved;
  frame.body = reinterpret_cast<const uint8_t*>(&body);
  frame.bodyLength = sizeof body;
  const Descriptor passed = pages.fd.get();
  // A client that does not read its connection gets no reply.
  sendFrame(connection, frame, &passed, body.bytes != 0 ? 1 : 0);
  if (pages.base != 0) freePages(pages.base, pages.length);
}

// Reads the reply, if it is one.
void takeReply(Descriptor connection, Observed* observed) {
  uint8_t bytes[Frame::kHeaderBytes + sizeof(ObservedText) + 1];
  UniqueFd fds[kMostPassed];
  uint32_t fdCount = 0;
  const int64_t n = receiveLocal(connection, bytes, sizeof bytes, fds, &fdCount);
  Frame frame;
  if (n <= 0 || !frame.decode(bytes, static_cast<uint32_t>(n)) || frame.kind != FrameKind::kObserved) return;
  ObservedText body;
  if (frame.bodyLength != sizeof body) return;
  std::memcpy(&body, frame.body, sizeof body);
  if (body.bytes == 0) {
    observed->answer = Observed::Answer::kRefused;
    return;
  }
  if (body.fileBytes > kMostBytes || body.bytes > body.fileBytes || fdCount != 1) return;
  Mapping mapping;
  if (!mapping.openForReading(fds[0].get(), body.fileBytes)) return;
  observed->text.assign(static_cast<const char*>(mapping.get()), body.bytes);
  observed->answer = Observed::Answer::kText;
}

}  // namespace

uint32_t Observers::accept(Descriptor connection) {
  std::lock_guard<std::mutex> guard(mutex_);
  UniqueFd way = waiting_.size() < kMostClients ? duplicateDescriptor(connection) : UniqueFd();
  if (!way.valid()) {
    sendText(connection, nullptr, 0);
    return 0;
  }
  const uint32_t number = next_++;
  if (next_ == 0) next_ = 1;
  waiting_[number] = std::move(way);
  return number;
}

void Observers::reply(uint32_t number, const void* text, uint64_t bytes) {
  UniqueFd way;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto found = waiting_.find(number);
    if (found == waiting_.end()) return;
    way = std::move(found->second);
    waiting_.erase(found);
  }
  sendText(way.get(), text, bytes);
}

void Observers::end() {
  std::lock_guard<std::mutex> guard(mutex_);
  waiting_.clear();
}

std::vector<Observed> observeProcesses(uint64_t longestNs) {
  HostCounters counters;
  LocalNames names;
  Readiness readiness;
  std::vector<Observed> all;
  std::vector<UniqueFd> connections;
  if (!readiness.valid()) return all;
  size_t open = 0;
  for (const uint32_t slot : Slots(counters, names, readiness).live()) {
    Observed observed;
    observed.slot = slot;
    UniqueFd connection;
    Frame request;
    request.kind = FrameKind::kObserve;
    const int error = names.connect(slotName(slot), &connection, &observed.process);
    if (error != 0 && error != EAGAIN) continue;  // it has ended in the meantime
    if (error == 0 && (sendFrame(connection.get(), request) != 0 ||
                       !readiness.add(connection.get(), Readiness::kReadable | Readiness::kEnded, all.size())))
      connection.reset();
    if (connection.valid()) open++;
    all.push_back(std::move(observed));
    connections.push_back(std::move(connection));
  }
  const uint64_t deadline = monotonicNs() + longestNs;
  for (uint64_t now = monotonicNs(); open != 0 && now < deadline; now = monotonicNs()) {
    const Descriptor waited = readiness.fd();
    waitReadable(&waited, 1, deadline - now);
    Readiness::Event events[Readiness::kMostEvents];
    const uint32_t count = readiness.take(events);
    for (uint32_t i = 0; i < count; i++) {
      UniqueFd& connection = connections[events[i].tag];
      if (!connection.valid()) continue;
      takeReply(connection.get(), &all[events[i].tag]);
      connection.reset();
      open--;
    }
  }
  for (const OtherDialect& other : otherDialects()) {
    Observed observed;
    observed.slot = other.slot;
    observed.process = other.process;
    observed.answer = Observed::Answer::kOtherDialect;
    all.push_back(std::move(observed));
  }
  return all;
}

}  // namespace nd
