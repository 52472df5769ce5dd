// A thread that waits a moment for its next task before it returns to its event loop.
#pragma once
#include "platform/wait_word.h"

namespace nd::door {

// The waiting point of one event loop's thread. Another thread with a task for it calls it by the task's number; if that returns
// false, the loop itself must be woken. Any number of threads call, one waits.
class Linger {
 public:
  // A new number for call(); the loop's thread.
  int32_t newNumber() { return nextNumber_++; }

  // Waits until `look` returns true, at most for this time or until it is called; returns the last result of `look`. Does not
  // wait if the loop was woken since the thread was there last.
  template <typename Look>
  bool stay(int32_t number, int64_t microseconds, Look look) {
    int32_t word = kAway;
    if (!word_.compare_exchange_strong(word, number)) {
      if (look()) return true;
      word_.store(kAway);  // return to the loop now
      return false;
    }
    // Earlier tasks have woken the loop; later ones use call().
    const bool found = look();
    if (!found) waitWhile(word_, number, microseconds);
    word = number;
    if (!word_.compare_exchange_strong(word, kAway) && word == kCalled) word_.compare_exchange_strong(word, kAway);
    return found || look();
  }

  // ── Between come() and leave() the thread is busy with the tasks of this number, and may wait in between. It looks once more
  // after leave(), so another thread that calls or knocks meanwhile need not wake the loop.
  void come(int32_t number) { here_.store(number); }
  void leave() { here_.store(kAway); }
  // Whether another thread has knocked since the last call.
  bool knocked() { return knocked_.load() && knocked_.exchange(false); }
  // From now on the thread calls knocked() whenever it looks.
  void answerKnocks() { answers_.store(true); }

  // True: the thread is here, or waited, for this number, and looks again now.
  bool call(int32_t number) {
    const bool here = here_.load() == number;
    if (!word_.compare_exchange_strong(number, kCalled)) return here;
    wakeAll(word_);
    return true;
  }

  // For tasks other than the one it waits for. True: the thread is here and will see it.
  bool knock() {
    if (!answers_.load() || here_.load() == kAway) return false;
    knocked_.store(true);
    int32_t word = here_.load();  // read again, because it may just have looked for the last time
    if (word == kAway) return false;
    if (word_.compare_exchange_strong(word, kCalled)) wakeAll(word_);
    return true;
  }

  // After the loop was woken: a waiting thread returns to it. With `remember` a busy one does so, too, as soon as it finds no
  // more tasks. Its own tasks need not be remembered, because it looks for them before it waits.
  void wokeLoop(bool remember) {
    int32_t word = word_.load();
    while (word >= kFirst || (remember && word != kWoken)) {
      if (!word_.compare_exchange_weak(word, kWoken)) continue;
      if (word >= kFirst) wakeAll(word_);
      return;
    }
  }

 private:
  // Otherwise the number that it waits for.
  static constexpr int32_t kAway = 0, kCalled = 1, kWoken = 2, kFirst = 3;
  std::atomic<int32_t> word_{kAway}, here_{kAway};
  std::atomic<bool> answers_{false}, knocked_{false};
  int32_t nextNumber_ = kFirst;
};

}  // namespace nd::door
