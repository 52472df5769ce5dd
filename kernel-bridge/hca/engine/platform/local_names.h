// The names that processes of one user and one dialect (kDialect) use to find each other: abstract UNIX listeners,
// "networkdirect/<uid>/<dialect>/<what>". Dialects before the sixth had no number there.
//
// Abstract names have no permissions, so another user may hold one of these names. A process that claims the name then
// listens on "<name>~<random>" instead, which others find in the OS's list of sockets and their owners. Because a
// process binds first and reads the list afterwards, at least one of two processes that claim the same name, in either
// form, sees the other and gives way. A name thus has at most one owner among the user's processes, whatever other
// users bind or release meanwhile.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/local_socket.h"
#include "platform/unique_fd.h"

namespace nd {

// Begins the suffix of a name whose usual form another user holds.
constexpr char kBesides = '~';

// Returns the OS name for a claim, if no other user holds it.
std::string ownName(const std::string& what);
// Returns the prefix of this user's names in all dialects, followed by `what`.
std::string userName(const std::string& what);

class LocalNames {
 public:
  // Claims the name and listens on it. Returns 0, EADDRINUSE if another process of this user has the name or is
  // claiming it, or another errno. `others`: all other names of this user's processes under the prefix `listed` of
  // `what`, as seen afterwards.
  int claim(const std::string& what, const std::string& listed, UniqueFd* listener, std::vector<std::string>* others);
  int claim(const std::string& what, UniqueFd* listener) {
    std::vector<std::string> others;
    return claim(what, what, listener, &others);
  }
  // Does the same without reading the list, for a name that only this process can claim.
  int listenAt(const std::string& what, UniqueFd* listener);

  // Connects to the process of this user that has the name. Returns 0 or an errno: ECONNREFUSED if no process has it,
  // EACCES if only another user has it, EAGAIN if the process has too many unaccepted connections.
  enum class Lookup {
    kNow,
    kUsual,   // the usual name now; variants from the recent list
    kRecent,  // only the recent list, without a system call: a name not listed counts as absent
  };
  int connect(const std::string& what, UniqueFd* connection, ProcessId* process, Lookup lookup = Lookup::kNow);

  // Returns the names of this user's processes, without `prefix`, or an empty optional if descriptors or memory are
  // exhausted.
  std::optional<std::vector<std::string>> list(const std::string& prefix);
  // Called when a new process has appeared, since absent names may exist now.
  void forget();

 private:
  // How long a list counts as recent. This is long enough that reading lists uses at most a tenth of the time.
  static constexpr uint64_t kReadShare = 10, kShortestNs = 1'000'000, kLongestNs = 20'000'000;
  using Listed = std::vector<LocalListener>;
  int claimBesides(const std::string& what, UniqueFd* listener, std::string* bound);
  void announce();
  std::optional<Listed> read(const std::string& prefix) { return listLocalListeners(prefix); }
  bool recentlyAbsent(const std::string& what);
  std::optional<Listed> recentBesides(const std::string& what);
  void readRecent();

  std::mutex mutex_;  // protects the following
  Listed recent_;     // under the user's prefix, of all users, ascending
  uint64_t recentUntil_ = 0;
};

}  // namespace nd
