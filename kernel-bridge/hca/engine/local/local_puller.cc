#include "local/local_puller.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fence.h"
#include "platform/event.h"
#include "platform/peer_memory.h"
#include "platform/thread.h"
#include "platform/wait_word.h"

namespace nd {
namespace {

std::atomic<uint32_t> threads{0};

}  // namespace

// Positions count pieces of all payloads. The engine writes `asked` and `taken`, the thread writes `read`.
struct LocalPuller::State {
  Peer peer;
  UniqueFd wake;
  uint8_t* buffers = nullptr;
  // The payload under way, from `first` on; changes only while read == asked.
  LocalPiece pieces[kMaxPieces];
  uint32_t count = 0, bytes = 0, first = 0;
  std::atomic<uint32_t> asked{0}, read{0}, taken{0};
  std::atomic<bool> failed{false}, stopping{false}, engineSleeps{false};
  std::atomic<uint32_t> bell{0}, resting{0};
  std::atomic<ThreadId> thread{0};

  State() { threads.fetch_add(1, std::memory_order_relaxed); }
  ~State() {
    freeAligned(buffers);
    threads.fetch_sub(1, std::memory_order_relaxed);
  }
  uint8_t* buffer(uint32_t position) const { return buffers + size_t{position % kPieces} * kPieceBytes; }
  void run();
  bool readPiece(uint32_t position);
};

std::unique_ptr<LocalPuller> LocalPuller::start(const Peer& peer, Descriptor wake) {
  auto state = std::make_shared<State>();
  if (threads.load(std::memory_order_relaxed) > kMostThreads) return nullptr;
  state->peer = peer;
  if (wake != kNoDescriptor) {
    state->wake = duplicateDescriptor(wake);
    if (!state->wake.valid()) return nullptr;
  }
  state->buffers = static_cast<uint8_t*>(allocateAligned(64, size_t{kPieces} * kPieceBytes));
  if (state->buffers == nullptr) return nullptr;
  auto* const own = new std::shared_ptr<State>(state);
  Thread thread;
  const auto main = [](void* argument) {
    const std::unique_ptr<std::shared_ptr<State>> of(static_cast<std::shared_ptr<State>*>(argument));
    (*of)->run();
  };
  if (!thread.start("rdma-pull", main, own)) {
    delete own;
    return nullptr;
  }
  thread.detach();
  return std::unique_ptr<LocalPuller>(new LocalPuller(std::move(state)));
}

LocalPuller::~LocalPuller() {
  state_->stopping.store(true, std::memory_order_release);
  ring();
}

// ── The engine's side ─────────────────────────────────────────────────────────────────────────────

void LocalPuller::ring() {
  state_->bell.fetch_add(1, std::memory_order_seq_cst);
  if (state_->resting.load(std::memory_order_seq_cst) != 0) wakeOne(state_->bell);
}

void LocalPuller::begin(const LocalPiece* pieces, uint32_t count, uint32_t bytes) {
  State& s = *state_;
  std::copy_n(pieces, count, s.pieces);
  s.count = count;
  s.bytes = bytes;
  s.first = s.asked.load(std::memory_order_relaxed);
  s.asked.store(s.first + (bytes + kPieceBytes - 1) / kPieceBytes, std::memory_order_release);
  ring();
}

bool LocalPuller::failed() const { return state_->failed.load(std::memory_order_acquire); }

const uint8_t* LocalPuller::piece() const {
  const uint32_t taken = state_->taken.load(std::memory_order_relaxed);
  return failed() || state_->read.load(std::memory_order_acquire) == taken ? nullptr : state_->buffer(taken);
}

void LocalPuller::take() {
  state_->taken.fetch_add(1, std::memory_order_release);
  ring();
}

void LocalPuller::forgetFailure() {
  state_->taken.store(state_->asked.load(std::memory_order_relaxed), std::memory_order_relaxed);
  state_->failed.store(false, std::memory_order_relaxed);
}

bool LocalPuller::waits() {
  const ThreadId thread = state_->thread.load(std::memory_order_relaxed);
  if (thread == 0 || lacksProcessor(thread)) return false;
  const uint64_t before = std::exchange(hasRun_, processorTimeNs(thread));
  return before == hasRun_;
}

void LocalPuller::sleeping() { state_->engineSleeps.store(true, std::memory_order_seq_cst); }

// ── The thread's ──────────────────────────────────────────────────────────────────────────────────

void LocalPuller::State::run() {
  thread.store(currentThread(), std::memory_order_relaxed);
  while (!stopping.load(std::memory_order_acquire)) {
    const uint32_t rung = bell.load(std::memory_order_seq_cst);
    const uint32_t at = read.load(std::memory_order_relaxed), end = asked.load(std::memory_order_acquire);
    if (stopping.load(std::memory_order_acquire)) return;
    if (at == end || at - taken.load(std::memory_order_acquire) == kPieces) {
      resting.store(1, std::memory_order_seq_cst);
      if (bell.load(std::memory_order_seq_cst) == rung) sleepWhile(bell, rung);
      resting.store(0, std::memory_order_relaxed);
      continue;
    }
    if (readPiece(at)) {
      read.store(at + 1, std::memory_order_release);
    } else {
      read.store(end, std::memory_order_relaxed);
      failed.store(true, std::memory_order_release);
    }
    fullFence();  // either the engine, about to sleep, sees it, or this sees that it sleeps
    if (engineSleeps.exchange(false, std::memory_order_seq_cst) && wake.valid()) raiseEvent(wake.get());
  }
}

bool LocalPuller::State::readPiece(uint32_t position) {
  const uint64_t from = uint64_t{position - first} * kPieceBytes, length = std::min<uint64_t>(kPieceBytes, bytes - from);
  uint8_t found[sizeof peer.nonce];
  const Piece to[] = {{found, sizeof found}, {buffer(position), length}};
  Piece sources[kMaxPieces + 1];
  uint32_t n = 0;
  sources[n++] = {reinterpret_cast<void*>(peer.nonceAddress), sizeof found};
  uint64_t before = 0, left = length;
  for (uint32_t i = 0; i < count && left != 0; i++) {
    const uint64_t skip = from + (length - left) - before;  // of this piece
    before += pieces[i].length;
    if (skip >= pieces[i].length) continue;
    const uint64_t part = std::min(left, pieces[i].length - skip);
    sources[n++] = {reinterpret_cast<void*>(pieces[i].address + skip), part};
    left -= part;
  }
  return readPeerMemory(peer.process, to, 2, sources, n) == static_cast<int64_t>(sizeof found + length) &&
         std::memcmp(found, peer.nonce, sizeof found) == 0;
}

}  // namespace nd
