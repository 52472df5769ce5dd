// Lets the thread of an event loop park for a moment, waiting for its next task, before it returns to its loop.
#pragma once
#include "platform/wait_word.h"

namespace nd {

// Another thread with a task unparks the thread by the task's token. If that returns false, the loop itself must be
// woken. Any number of threads may unpark, but only one parks.
//
// No task is lost. A thread parks by a compare-exchange from kAway, and checks once more after that; an unparking
// thread changes the word, or finds kAway and wakes the loop. The loop's wake-up leaves kWoken in the word, which keeps
// a thread that is about to park from doing so.
class Parking {
 public:
  // Returns a new token for unpark(). For the loop's thread.
  int32_t newToken() { return nextToken_++; }

  // Waits until `look` returns true, at most for this time, or until the thread is unparked. Returns the last result of
  // `look`. Does not wait if the loop was woken since the thread last ran it.
  template <typename Ready>
  bool park(int32_t token, int64_t microseconds, Ready ready) {
    int32_t word = kAway;
    if (!word_.compare_exchange_strong(word, token)) {
      if (ready()) return true;
      word_.store(kAway);  // return to the loop now
      return false;
    }
    // Earlier tasks have woken the loop; later ones use unpark().
    const bool found = ready();
    if (!found) waitWhile(word_, token, microseconds);
    word = token;
    if (!word_.compare_exchange_strong(word, kAway) && word == kUnparked) word_.compare_exchange_strong(word, kAway);
    return found || ready();
  }

  // ── Between begin() and end() the thread is busy with the tasks of this token, and may park in between. It checks
  // once more after end(), so another thread that unparks or notifies meanwhile need not wake the loop.
  void begin(int32_t token) { busy_.store(token); }
  void end() { busy_.store(kAway); }
  // Returns whether another thread has notified since the last call.
  bool notified() { return notified_.load() && notified_.exchange(false); }
  // From now on the thread calls notified() whenever it checks for tasks.
  void acceptNotifications() { accepts_.store(true); }

  // Returns true if the thread is busy with this token, or was parked with it, and therefore checks again.
  bool unpark(int32_t token) {
    const bool busy = busy_.load() == token;
    if (!word_.compare_exchange_strong(token, kUnparked)) return busy;
    wakeAll(word_);
    return true;
  }

  // For tasks other than the one for which the thread waits. Returns true if the thread is busy and will see the task.
  bool notify() {
    if (!accepts_.load() || busy_.load() == kAway) return false;
    notified_.store(true);
    int32_t word = busy_.load();  // read again, because the thread may just have checked for the last time
    if (word == kAway) return false;
    if (word_.compare_exchange_strong(word, kUnparked)) wakeAll(word_);
    return true;
  }

  // Called after the loop was woken. A parked thread returns to the loop. With `remember`, a busy thread also does so
  // as soon as it finds no more tasks. Tasks of the thread's own token need not be remembered, because it checks for
  // them before it parks.
  void wokeLoop(bool remember) {
    int32_t word = word_.load();
    while (word >= kFirst || (remember && word != kWoken)) {
      if (!word_.compare_exchange_weak(word, kWoken)) continue;
      if (word >= kFirst) wakeAll(word_);
      return;
    }
  }

 private:
  // Any other value of the word is the token for which the thread waits.
  static constexpr int32_t kAway = 0, kUnparked = 1, kWoken = 2, kFirst = 3;
  std::atomic<int32_t> word_{kAway}, busy_{kAway};
  std::atomic<bool> accepts_{false}, notified_{false};
  int32_t nextToken_ = kFirst;
};

}  // namespace nd
