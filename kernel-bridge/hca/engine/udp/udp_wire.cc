#include "udp/udp_wire.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/packet_headers.h"

namespace nd {
namespace {

constexpr uint32_t kMaxRunBytes = 65000, kMaxRunPackets = 64;  // limits of one message

}  // namespace

struct UdpWire::Buffers {
  // Packets are grouped by run. The bytes of all packets follow one another without gaps.
  DatagramsOut out;
  Path paths[kBatch];
  Run runs[kBatch];
  alignas(64) uint8_t bytes[kStagingBytes];
  DatagramsIn in{true};
};

void UdpWire::BuffersDeleter::operator()(Buffers* buffers) const { delete buffers; }

int UdpWire::open(IpFamily family, uint32_t receiveBufferBytes, bool first, bool inRuns) {
  DatagramSocket opened;
  if (const int error = opened.openShared(family, kRocePort, receiveBufferBytes, inRuns, first)) return error;
  use(std::move(opened), false);
  return 0;
}

int UdpWire::openBeside(IpFamily family) {
  DatagramSocket opened;
  if (const int error = opened.openBeside(family, UdpFlow::kSendBuffer)) return error;
  use(std::move(opened), true);
  return 0;
}

void UdpWire::use(DatagramSocket socket, bool beside) {
  if (isOpen()) flush();  // the ICRC covers the source port of these packets
  socket_ = std::move(socket);
  beside_ = beside;
  if (!buffers_) buffers_.reset(new Buffers);
  staged_ = stagedBytes_ = runs_ = 0;
}

void UdpWire::close() {
  socket_.close();
  flows_.close();
}

uint8_t* UdpWire::stage() {
  if (!hasRoom()) flush();
  return buffers_->bytes + stagedBytes_;
}

UdpWire::Way UdpWire::prepare(const Path& path, const uint8_t* bth, uint32_t length, bool mayRun) {
  Way way;
  way.sourcePort = sourcePort();
  // The flush for room comes first, so that the packet's run and ID are still valid when it is committed.
  const uint32_t slot = mayRun ? bth[wire::kBthQpnAt] : 0;  // on this host, each process has its own flow
  UdpFlow* flow = flows_.readyOne(path, slot);
  if (!hasRoom() || (flow == nullptr && flows_.evicts(path, slot))) flush();
  if (flow == nullptr) flow = &flows_.at(path, slot);
  if (!flow->use(counters_)) return way;
  prepared_ = flow;
  preparedExtends_ = mayRun && extendsRun(path, flow, bth, length);
  way.sourcePort = flow->sourcePort();
  if (socket_.family() == IpFamily::kV4) way.ipv4Id = preparedExtends_ ? runOf(runs_ - 1).id : flow->nextId();
  return way;
}

const UdpWire::Run& UdpWire::runOf(uint32_t index) const { return buffers_->runs[index]; }

bool UdpWire::extendsRun(const Path& path, const UdpFlow* flow, const uint8_t* bth, uint32_t length) const {
  if (!runsWork_ || runs_ == 0) return false;
  const Buffers& out = *buffers_;
  const Run& run = out.runs[runs_ - 1];
  const Path& p = out.paths[runs_ - 1];
  if (!run.open || run.flow != flow || run.count == kMaxRunPackets || run.bytes + length > kMaxRunBytes) return false;
  // A run is steered as a whole by its first packet, so all of its packets must be for the same QP.
  return length <= run.segment && std::memcmp(bth + wire::kBthQpnAt, out.bytes + run.at + wire::kBthQpnAt, 3) == 0 &&
         p.destination == path.destination && p.source == path.source && p.trafficClass == path.trafficClass &&
         p.hopLimit == path.hopLimit && p.flowLabel == path.flowLabel && p.scopeId == path.scopeId;
}

void UdpWire::commit(const Path& path, uint32_t length, bool mayRun) {
  Buffers& b = *buffers_;
  const uint32_t at = stagedBytes_;
  UdpFlow* const flow = prepared_;
  prepared_ = nullptr;
  staged_++;
  stagedBytes_ += length;
  if (flow != nullptr ? preparedExtends_ : mayRun && extendsRun(path, flow, b.bytes + at, length)) {
    Run& run = b.runs[runs_ - 1];
    run.count++;
    run.bytes += length;
    run.open = length == run.segment;  // a shorter packet ends the run
    return;
  }
  const uint32_t i = runs_++;
  b.runs[i] = {at, 1, length, length, mayRun, flow, 0, false, false};
  b.paths[i] = path;
  if (flow == nullptr) return b.out.set(i, b.bytes + at, length, path, kRocePort, socket_);
  b.out.set(i, b.bytes + at, length);
  b.runs[i].id = flow->nextId();
  b.runs[i].checked = flow->checkDue();
  flow->stagedOne();
  if (b.runs[i].checked) b.out.requestId(i);
}

int UdpWire::flush() {
  if (runs_ == 0) return 0;
  Buffers& b = *buffers_;
  int lastError = 0;
  uint32_t done = 0;
  uint32_t retried = UINT32_MAX;  // index of the message
  for (uint32_t i = 0; i < runs_; i++)
    if (b.runs[i].count != 1) b.out.cutUp(i, b.runs[i].bytes, b.runs[i].segment);
  while (done < runs_) {
    const Run& run = b.runs[done];
    if (run.lost) {
      done++;
      continue;
    }
    if (run.flow != nullptr && !run.flow->ready()) {  // lost, like the failed one before it
      refused(done++);
      continue;
    }
    uint32_t together = 1;  // on the same socket
    while (done + together < runs_ && b.runs[done + together].flow == run.flow) together++;
    const int n = b.out.send(run.flow != nullptr ? run.flow->socket().fd() : socket_.fd(), done, together);
    if (n > 0) {
      for (int i = 0; i < n; i++, done++) {
        const Run& sent = b.runs[done];
        counters_.add(HostCounter::kWireTxPackets, sent.count);
        if (sent.checked && sent.flow->ready()) sent.flow->check(sent.id, counters_);
      }
      continue;
    }
    lastError = -n;
    // A connected socket also reports an ICMP error once, instead of sending.
    const bool reported = run.flow != nullptr && (n == -ECONNREFUSED || n == -EHOSTUNREACH || n == -ENETUNREACH);
    const bool isFull = n == -EAGAIN || n == -ENOBUFS;
    if ((isFull || reported) && retried != done) {
      retried = done;
      continue;
    }
    if (isFull) {
      // Sent packets release the buffer at their own pace. This function must not wait, and transports retransmit.
      // Other sockets are not full.
      full(done, lastError);
      continue;
    }
    // A flow label without a lease is refused if another socket of this host has an exclusive one. It is only a hint,
    // so the packet is sent without it.
    if ((n == -ENOENT || n == -EINVAL) && run.flow == nullptr && b.out.dropLabel(done)) continue;
    // This affects only this message: there is no route, it is too long for the path, the source is not an address of
    // this host, or the OS does not support runs.
    if (run.flow != nullptr) {
      if (run.count > 1 && (lastError == EINVAL || lastError == EIO)) runsWork_ = false;
      counters_.add(HostCounter::kTxErrors, run.count);
      run.flow->failed();
    } else if (run.count == 1) {
      counters_.add(HostCounter::kTxErrors);
    } else if (sendOneByOne(done, &lastError)) {
      runsWork_ = false;
    }
    done++;
  }
  staged_ = stagedBytes_ = runs_ = 0;
  return lastError;
}

bool UdpWire::sendSingle(const Path& path, uint8_t* bth, uint32_t length, bool mayRun) {
  if (runs_ != 0) return false;
  UdpFlow* const flow = flows_.readyOne(path, mayRun ? bth[wire::kBthQpnAt] : 0);
  if (flow == nullptr || flow->checkDue()) return false;
  storeIcrc(bth + length, flow->icrcOf(bth, length));
  if (const int error = flow->socket().send(bth, length + kIcrcBytes)) {
    // If room was missing, or an earlier error was reported, the OS has not used an ID; otherwise that is unknown.
    if (error != EAGAIN && error != ECONNREFUSED) flow->failed();
    return false;
  }
  flow->stagedOne();
  counters_.add(HostCounter::kWireTxPackets);
  return true;
}

// Called when the socket's buffer has no room for this message. It is lost, like all later ones on the same socket.
void UdpWire::full(uint32_t message, int error) {
  Run* const runs = buffers_->runs;
  UdpFlow* const flow = runs[message].flow;
  uint32_t lost = 0;
  for (uint32_t i = message; i < runs_; i++) {
    Run& run = runs[i];
    if (run.flow != flow) continue;
    run.lost = true;
    lost++;
    counters_.add(HostCounter::kTxBufferFull, run.count);
  }
  if (flow == nullptr) return;
  // The OS uses an ID once it has room; if other memory is short, that is unknown.
  if (error == EAGAIN) flow->unstage(runs[message].id, lost);
  else flow->failed();
}

// Called when a message is lost because its flow has ended.
void UdpWire::refused(uint32_t message) {
  const Run& run = runOf(message);
  counters_.add(HostCounter::kTxBufferFull, run.count);
  if (run.flow != nullptr) run.flow->failed();
}

// Returns true if all were sent, one by one.
bool UdpWire::sendOneByOne(uint32_t message, int* lastError) {
  Buffers& b = *buffers_;
  const Run& run = b.runs[message];
  bool all = true;
  for (uint32_t done = 0; done < run.bytes; done += run.segment) {
    b.out.setSingle(message, b.bytes + run.at + done, std::min(run.segment, run.bytes - done));
    const int n = b.out.send(socket_.fd(), message, 1);
    if (n > 0) {
      counters_.add(HostCounter::kWireTxPackets);
      continue;
    }
    *lastError = -n;
    counters_.add(HostCounter::kTxErrors);
    all = false;
  }
  if (all) *lastError = 0;
  return all;
}

uint32_t UdpWire::receive(uint32_t budget) {
  const uint32_t count = std::min(budget, expected_), got = buffers_->in.receive(socket_.fd(), count);
  // Finding no more datagrams costs as much as a small datagram, so as many are requested as are likely to be there.
  expected_ = got == count ? std::min(2 * expected_, kReceiveBatch) : std::max(got, 1u);
  return got;
}

uint32_t UdpWire::receiveFrom(Descriptor fd) { return buffers_->in.receive(fd, kReceiveBatch); }

Datagram UdpWire::datagram(uint32_t index) const { return buffers_->in.datagram(index); }

}  // namespace nd
