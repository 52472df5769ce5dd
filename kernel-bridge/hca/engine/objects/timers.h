// When to check a queue pair again. A timer is not postponed when work progresses. It fires too early and is set again,
// so the data path almost never touches the heap.
#pragma once
#include <vector>
#include "objects/qp.h"

namespace nd {

class TimerHeap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint64_t earliest() const { return heap_.empty() ? UINT64_MAX : heap_[0]->timerDue; }
  Qp* top() const { return heap_.empty() ? nullptr : heap_[0]; }
  void reserve(size_t n) {
    if (n > heap_.capacity()) heap_.reserve(n * 2);  // so that set() on the data path never allocates
  }

  // Makes the timer fire earlier; a time later than the current one is ignored.
  void set(Qp& qp, uint64_t due) {
    if (qp.timerPlace == kNone) {
      qp.timerDue = due;
      qp.timerPlace = uint32_t(heap_.size());
      heap_.push_back(&qp);
    } else if (due < qp.timerDue) {
      qp.timerDue = due;
    } else {
      return;
    }
    up(qp.timerPlace);
  }

  static bool has(const Qp& qp) { return qp.timerPlace != kNone; }

  void clear(Qp& qp) {
    const uint32_t place = qp.timerPlace;
    if (place == kNone) return;
    qp.timerPlace = kNone;
    Qp* last = heap_.back();
    heap_.pop_back();
    if (last == &qp) return;
    heap_[place] = last;
    last->timerPlace = place;
    up(place);
    down(last->timerPlace);
  }

 private:
  void swap(uint32_t a, uint32_t b) {
    std::swap(heap_[a], heap_[b]);
    heap_[a]->timerPlace = a;
    heap_[b]->timerPlace = b;
  }
  void up(uint32_t i) {
    for (; i > 0 && heap_[i]->timerDue < heap_[(i - 1) / 2]->timerDue; i = (i - 1) / 2) swap(i, (i - 1) / 2);
  }
  void down(uint32_t i) {
    for (;;) {
      uint32_t least = i;
      for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); child++)
        if (heap_[child]->timerDue < heap_[least]->timerDue) least = child;
      if (least == i) return;
      swap(i, least);
      i = least;
    }
  }
  std::vector<Qp*> heap_;
};

}  // namespace nd
