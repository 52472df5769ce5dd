// The report of a process to other processes of this user. It is a text that the soft kernel of the process writes on
// request. A client connects to the names of slots and needs no slot itself.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "platform/os.h"
#include "platform/unique_fd.h"

namespace nd {

// The body of a kObserved frame. The text is at the start of the accompanying file.
struct ObservedText {
  uint64_t bytes = 0;  // 0: this process gives no report
  uint64_t fileBytes = 0;
};

// Clients that have requested a report from this process and wait for its kernel. Any thread.
class Observers {
 public:
  // Clients beyond this number are refused immediately.
  static constexpr size_t kMostClients = 16;
  // Keeps the connection to the client. Returns its number for reply(), or 0 if the client was refused.
  uint32_t accept(Descriptor connection);
  // Replies to a client; no bytes refuse it. An unknown number is ignored.
  void reply(uint32_t number, const void* text, uint64_t bytes);
  void end();

 private:
  std::mutex mutex_;
  std::map<uint32_t, UniqueFd> waiting_;
  uint32_t next_ = 1;
};

struct Observed {
  enum class Answer : uint8_t {
    kText,
    kRefused,       // it gives no report
    kSilent,        // it did not reply in time, has ended, or replied in another format
    kOtherDialect,  // not queried, because it would not understand the request (kDialect)
  };
  uint32_t slot = 0;
  ProcessId process = 0;  // 0: not visible to this process
  Answer answer = Answer::kSilent;
  std::string text;
};

// Queries all processes of this user, each HCA through its own slot, and waits at most this long for the replies. These
// are ordered by slot; processes of other dialects come last.
std::vector<Observed> observeProcesses(uint64_t longestNs);

}  // namespace nd
