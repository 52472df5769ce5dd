// A thread's event loop, for threads of another addon: it calls a function of JavaScript's soon after wake(). Made by
// wakers.cc; a structure without C++ classes, since the other addon has its own copies of those.
#pragma once

namespace nd {

struct Waker {
  void (*wake)(Waker* self);  // any thread
};

}  // namespace nd
