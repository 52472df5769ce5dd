// A queue of queue pairs, linked through the queue pairs themselves, so nothing is allocated. A queue pair is in the
// queue at most once, which its mark shows.
#pragma once
#include "objects/qp.h"

namespace nd {

template <Qp* Qp::*kNext, Mark kMark>
class QpLine {
 public:
  bool empty() const { return first_ == nullptr; }
  Qp* first() const { return first_; }
  Qp* last() const { return last_; }
  static Qp* next(const Qp& qp) { return qp.*kNext; }

  void push(Qp& qp) {
    if (qp.has(kMark)) return;
    qp.set(kMark);
    qp.*kNext = nullptr;
    (last_ ? last_->*kNext : first_) = &qp;
    last_ = &qp;
  }
  // Moves a queue pair to the front, wherever it is.
  void pushFront(Qp& qp) {
    remove(qp);
    qp.set(kMark);
    qp.*kNext = first_;
    first_ = &qp;
    if (!last_) last_ = &qp;
  }
  Qp* pop() {
    Qp* const qp = first_;
    if (!qp) return nullptr;
    first_ = qp->*kNext;
    if (!first_) last_ = nullptr;
    qp->clear(kMark);
    return qp;
  }
  void remove(Qp& qp) {
    if (!qp.has(kMark)) return;
    qp.clear(kMark);
    Qp* before = nullptr;
    for (Qp* q = first_; q != &qp; q = q->*kNext) before = q;
    (before ? before->*kNext : first_) = qp.*kNext;
    if (last_ == &qp) last_ = before;
  }

 private:
  Qp *first_ = nullptr, *last_ = nullptr;
};

}  // namespace nd
