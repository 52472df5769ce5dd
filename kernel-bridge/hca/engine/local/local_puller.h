// Reads the memory of one peer's process by the system (peer_memory.h), on a thread of its own: a page of the peer's that does not come
// keeps that thread waiting, and nobody else. It reads into buffers of its own, because a read that waits cannot be ended: its place must
// be nobody else's memory.
//
// One payload at a time, in pieces; a few pieces ahead of the one that is taken. All functions require the engine's lock.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "local/direct_board.h"
#include "platform/os.h"

namespace nd {

// A piece of a peer's memory.
struct LocalPiece {
  uint64_t address, length;
  uint32_t number;  // of its offer (local_maps.h); 0: none
};

class LocalPuller {
 public:
  static constexpr uint32_t kPieceBytes = 64u << 10, kPieces = 4;
  static constexpr uint32_t kMaxPieces = 11;            // of a payload
  // Between two looks at a thread that is late; if it waits then, the peer sends such payload another way, for ever.
  static constexpr uint64_t kPatienceNs = DirectBoard::kPatienceNs;
  static constexpr uint32_t kMostThreads = 32;          // of a process, those included that wait without end

  // What each read proves: the number at that address tells the process apart from a successor with the same id.
  struct Peer {
    ProcessId process;
    uint64_t nonceAddress;
    uint8_t nonce[16];
  };
  // Null: there are too many threads, or the system has no room. `wake` is raised when a piece has come after sleeping(true); it stays
  // the caller's.
  static std::unique_ptr<LocalPuller> start(const Peer& peer, Descriptor wake);
  // The thread ends as soon as it can.
  ~LocalPuller();

  // Begins to read so many bytes, which the pieces have together. Nothing is under way.
  void begin(const LocalPiece* pieces, uint32_t count, uint32_t bytes);
  // The next piece, of kPieceBytes unless it is the last; null: it has not come. take() follows.
  const uint8_t* piece() const;
  void take();
  // Whether the system has refused; then nothing is under way.
  bool failed() const;
  void forgetFailure();
  void sleeping();
  // Whether the thread has not run since the last call, though it could: the peer's memory keeps it waiting.
  bool waits();

 private:
  struct State;
  explicit LocalPuller(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void ring();
  std::shared_ptr<State> state_;  // with the thread
  uint64_t hasRun_ = UINT64_MAX;  // processor time, as last seen
};

}  // namespace nd
