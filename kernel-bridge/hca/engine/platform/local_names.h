// The names by which processes of one user find each other: abstract UNIX listeners, "networkdirect/<uid>/<what>".
//
// Abstract names have no permissions, so another user may hold a name of ours. Then whoever claims it listens at
// "<name>~<random>" instead, and the others find that in the system's list, which says whose each socket is. A claimant binds
// first and looks at the list then: of two that claim the same name, in whatever form, at least one sees the other and gives
// way. So a name has one owner among the user's processes, whatever others bind or let go in between.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/local_socket.h"
#include "platform/unique_fd.h"

namespace nd {

// The name of the operating system that a claim has, where no other user is in the way.
std::string ownName(const std::string& what);

class LocalNames {
 public:
  // Listens there. 0; EADDRINUSE: another process of this user has it, or claims it just now; or another errno. `others`: all
  // else that processes of this user have under the prefix `listed` of `what`, as seen afterwards.
  int claim(const std::string& what, const std::string& listed, UniqueFd* listener, std::vector<std::string>* others);
  int claim(const std::string& what, UniqueFd* listener) {
    std::vector<std::string> others;
    return claim(what, what, listener, &others);
  }
  // The same without a look at the list: for a name that only this process can claim.
  int listenAt(const std::string& what, UniqueFd* listener);

  // Connects to the process of this user that has the name. 0; ECONNREFUSED or EACCES: none has (EACCES: but another user);
  // EAGAIN: it has too many unaccepted connections; or another errno.
  enum class Look {
    kNow,
    kUsual,   // the usual name now; others as the list had them a moment ago
    kRecent,  // what was absent from the list a moment ago is absent, without a system call
  };
  int connect(const std::string& what, UniqueFd* connection, pid_t* pid, Look look = Look::kNow);

  // What processes of this user have, after `prefix`. Nothing at all when there was no descriptor or memory to ask with.
  std::optional<std::vector<std::string>> list(const std::string& prefix);
  // Somebody is new: what was absent may be there.
  void forget();

 private:
  // How long a list counts as recent: so long that reading lists takes a tenth of the time at most, whatever is in them.
  static constexpr uint64_t kReadShare = 10, kShortestNs = 1'000'000, kLongestNs = 20'000'000;
  using Listed = std::vector<LocalListener>;
  int claimBesides(const std::string& what, UniqueFd* listener, std::string* bound);
  void announce();
  std::optional<Listed> read(const std::string& prefix) { return listLocalListeners(prefix); }
  bool recentlyAbsent(const std::string& what);
  std::optional<Listed> recentBesides(const std::string& what);
  void readRecent();

  std::mutex mutex_;  // of what follows
  Listed recent_;  // under the user's prefix, of whatever user, ascending
  uint64_t recentUntil_ = 0;
};

}  // namespace nd
