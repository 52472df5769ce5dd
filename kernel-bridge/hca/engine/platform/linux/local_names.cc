#include "platform/local_names.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "schema/numbers.h"
#include "platform/os.h"

namespace nd {
namespace {

const char kSlotPrefix[] = "slot/";
constexpr int kAttempts = 16;

std::string randomTail() {
  std::random_device random;
  char text[24];
  std::snprintf(text, sizeof text, "%c%08x%08x", kBesides, random(), random());
  return text;
}

// Returns a name without the suffix of its variants.
std::string plainName(const std::string& name) { return name.substr(0, name.find(kBesides)); }

bool isOwn(const LocalListener& listener, const std::string& name) {
  if (listener.owner != LocalListener::Owner::kUnknown) return listener.owner == LocalListener::Owner::kTrusted;
  UniqueFd connection;
  const int error = connectLocal(name, &connection, nullptr);
  return error == 0 || error == EAGAIN;
}

}  // namespace

std::string userName(const std::string& what) { return "networkdirect/" + std::to_string(geteuid()) + "/" + what; }
std::string ownName(const std::string& what) { return userName(std::to_string(kDialect) + "/" + what); }

// Claims a variant of the name, because the usual form is taken.
int LocalNames::claimBesides(const std::string& what, UniqueFd* listener, std::string* bound) {
  const std::string usual = ownName(what);
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    const auto listed = read(usual);
    if (!listed) return EMFILE;
    const auto holder =
        std::find_if(listed->begin(), listed->end(), [](const LocalListener& l) { return l.name.empty(); });
    if (holder != listed->end()) {
      if (isOwn(*holder, usual)) return EADDRINUSE;
      const std::string name = usual + randomTail();
      const int error = listenLocal(name, listener);
      if (error == 0) {
        *bound = name;
        announce();
      }
      if (error != EADDRINUSE) return error;
      continue;
    }
    const int error = listenLocal(usual, listener);  // it has been released
    if (error == 0) *bound = usual;
    if (error != EADDRINUSE) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return EADDRINUSE;
}

// Each process of this user forgets its list of absent names when it accepts the connection.
void LocalNames::announce() {
  for (const std::string& slot : list(kSlotPrefix).value_or(std::vector<std::string>())) {
    UniqueFd connection;
    connect(kSlotPrefix + slot, &connection, nullptr);
  }
}

int LocalNames::claim(const std::string& what, const std::string& prefix, UniqueFd* listener,
                      std::vector<std::string>* others) {
  std::string bound = ownName(what);
  UniqueFd fd;
  int error = listenLocal(bound, &fd);
  if (error == EADDRINUSE) error = claimBesides(what, &fd, &bound);
  if (error != 0) return error;
  const auto listed = read(ownName(prefix));
  if (!listed) return EMFILE;
  for (const LocalListener& l : *listed) {
    const std::string name = ownName(prefix) + l.name;
    if (name == bound || !isOwn(l, name)) continue;
    const std::string other = plainName(prefix + l.name);
    if (other == what) return EADDRINUSE;
    others->push_back(other.substr(prefix.size()));
  }
  *listener = std::move(fd);
  return 0;
}

int LocalNames::listenAt(const std::string& what, UniqueFd* listener) {
  std::string bound;
  const int error = listenLocal(ownName(what), listener);
  return error == EADDRINUSE ? claimBesides(what, listener, &bound) : error;
}

int LocalNames::connect(const std::string& what, UniqueFd* connection, ProcessId* process, Lookup lookup) {
  if (lookup == Lookup::kRecent && recentlyAbsent(what)) return ECONNREFUSED;
  const std::string usual = ownName(what);
  const int error = connectLocal(usual, connection, process);
  if (error != ECONNREFUSED && error != EACCES && error != EAGAIN) return error;
  const auto listed = lookup == Lookup::kNow ? read(usual) : recentBesides(what);
  if (!listed) return error;
  bool strangers = false;
  for (const LocalListener& l : *listed) {
    if (l.name.empty()) strangers = l.owner == LocalListener::Owner::kStranger;
    if (l.name.empty() || l.name[0] != kBesides || l.owner == LocalListener::Owner::kStranger) continue;
    if (connectLocal(usual + l.name, connection, process) == 0) return 0;
  }
  return strangers ? EACCES : error;  // only a process of this user can keep a caller waiting
}

std::optional<std::vector<std::string>> LocalNames::list(const std::string& prefix) {
  const auto listed = read(ownName(prefix));
  if (!listed) return std::nullopt;
  std::vector<std::string> names;
  for (const LocalListener& l : *listed)
    if (isOwn(l, ownName(prefix) + l.name)) names.push_back(plainName(l.name));
  return names;
}

namespace {

// Returns the first entry that may be `what` or a variant of it.
auto firstOf(const std::vector<LocalListener>& listed, const std::string& what) {
  return std::lower_bound(listed.begin(), listed.end(), what,
                          [](const LocalListener& l, const std::string& name) { return l.name < name; });
}

bool isOf(const LocalListener& l, const std::string& what) {
  return l.name.compare(0, what.size(), what) == 0 && (l.name.size() == what.size() || l.name[what.size()] == kBesides);
}

}  // namespace

bool LocalNames::recentlyAbsent(const std::string& what) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (recentUntil_ == 0 || monotonicNs() >= recentUntil_) return false;
  // Other names with the same beginning sort in between: "…/1", "…/10", "…/1~…".
  for (auto i = firstOf(recent_, what); i != recent_.end() && i->name.compare(0, what.size(), what) == 0; ++i)
    if (isOf(*i, what) && i->owner != LocalListener::Owner::kStranger) return false;
  return true;
}

std::optional<LocalNames::Listed> LocalNames::recentBesides(const std::string& what) {
  readRecent();
  std::lock_guard<std::mutex> guard(mutex_);
  Listed found;
  for (auto i = firstOf(recent_, what); i != recent_.end() && i->name.compare(0, what.size(), what) == 0; ++i)
    if (isOf(*i, what)) found.push_back({i->name.substr(what.size()), i->owner});
  return found;
}

void LocalNames::readRecent() {
  const uint64_t start = monotonicNs();
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (start < recentUntil_) return;
  }
  auto listed = read(ownName(""));
  if (!listed) return;
  std::sort(listed->begin(), listed->end(),
            [](const LocalListener& a, const LocalListener& b) { return a.name < b.name; });
  const uint64_t end = monotonicNs();
  std::lock_guard<std::mutex> guard(mutex_);
  recent_ = std::move(*listed);
  recentUntil_ = end + std::clamp(kReadShare * (end - start), kShortestNs, kLongestNs);
}

void LocalNames::forget() {
  std::lock_guard<std::mutex> guard(mutex_);
  recentUntil_ = 0;
}

}  // namespace nd
