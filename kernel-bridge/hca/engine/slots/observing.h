// What a process says of itself to other processes of this user: a text, which its soft kernel writes when it is asked.
// Whoever asks connects to the names of slots and needs no slot of its own.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "platform/os.h"
#include "platform/unique_fd.h"

namespace nd {

// Body of a kObserved frame. The text is at the beginning of the file that comes along.
struct ObservedText {
  uint64_t bytes = 0;  // 0: this process tells nothing
  uint64_t fileBytes = 0;
};

// Those who have asked this process and wait for its kernel. Any thread.
class Observers {
 public:
  // Beyond this many nobody waits: they are refused at once.
  static constexpr size_t kMostAskers = 16;
  // Keeps the way to whoever asks. Returns its number for answer(); 0: it was refused.
  uint32_t ask(Descriptor connection);
  // No bytes: refuses. A number that nobody has any more is ignored.
  void answer(uint32_t number, const void* text, uint64_t bytes);
  void end();

 private:
  std::mutex mutex_;
  std::map<uint32_t, UniqueFd> waiting_;
  uint32_t next_ = 1;
};

struct Observed {
  enum class Answer : uint8_t {
    kText,
    kRefused,       // it tells nothing
    kSilent,        // it did not answer in time, has ended, or answered in another form
    kOtherDialect,  // it was not asked: it would not understand (kDialect)
  };
  uint32_t slot = 0;
  ProcessId process = 0;  // 0: one that this process cannot see
  Answer answer = Answer::kSilent;
  std::string text;
};

// Asks all processes of this user, each HCA by its own slot, and waits for the answers, at most so long. In the order
// of slots; those of other dialects last.
std::vector<Observed> observeProcesses(uint64_t longestNs);

}  // namespace nd
