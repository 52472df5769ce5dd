// The names by which processes of one user and one dialect (kDialect) find each other: abstract UNIX listeners,
// "networkdirect/<uid>/<dialect>/<what>". Dialects before the sixth had no number there.
//
// Abstract names have no permissions, so another user may hold a name of ours. A claimant then listens at
// "<name>~<random>" instead, and others find that in the system's list, which has the owner of each socket. A claimant
// binds first and reads the list afterwards: of two claims of one name, in any form, at least one sees the other and
// gives way. So a name has one owner among the user's processes, whatever others bind or release meanwhile.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/local_socket.h"
#include "platform/unique_fd.h"

namespace nd {

// Begins what is appended to a name that another user holds.
constexpr char kBesides = '~';

// The operating system's name for a claim, if no other user holds it.
std::string ownName(const std::string& what);
// The beginning of the names of this user in all dialects, and `what`.
std::string userName(const std::string& what);

class LocalNames {
 public:
  // Listens there. Returns 0; EADDRINUSE: another process of this user has it, or claims it just now; or another errno.
  // `others`: all other names of this user's processes under the prefix `listed` of `what`, as seen afterwards.
  int claim(const std::string& what, const std::string& listed, UniqueFd* listener, std::vector<std::string>* others);
  int claim(const std::string& what, UniqueFd* listener) {
    std::vector<std::string> others;
    return claim(what, what, listener, &others);
  }
  // The same without reading the list: for a name that only this process can claim.
  int listenAt(const std::string& what, UniqueFd* listener);

  // Connects to the process of this user that has the name. Returns 0; ECONNREFUSED or EACCES: none has it (EACCES: but
  // another user has); EAGAIN: it has too many unaccepted connections; or another errno.
  enum class Look {
    kNow,
    kUsual,   // the usual name now; variants by the recent list
    kRecent,  // only the recent list, without a system call: what it lacked is absent
  };
  int connect(const std::string& what, UniqueFd* connection, ProcessId* process, Look look = Look::kNow);

  // The names of this user's processes, behind `prefix`. Empty optional: no descriptor or memory for the query.
  std::optional<std::vector<std::string>> list(const std::string& prefix);
  // There is a new process: absent names may exist now.
  void forget();

 private:
  // How long a list counts as recent: long enough that reading lists takes at most a tenth of the time.
  static constexpr uint64_t kReadShare = 10, kShortestNs = 1'000'000, kLongestNs = 20'000'000;
  using Listed = std::vector<LocalListener>;
  int claimBesides(const std::string& what, UniqueFd* listener, std::string* bound);
  void announce();
  std::optional<Listed> read(const std::string& prefix) { return listLocalListeners(prefix); }
  bool recentlyAbsent(const std::string& what);
  std::optional<Listed> recentBesides(const std::string& what);
  void readRecent();

  std::mutex mutex_;  // guards the following
  Listed recent_;     // under the user's prefix, of all users, ascending
  uint64_t recentUntil_ = 0;
};

}  // namespace nd
