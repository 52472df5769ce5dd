// A thread's event loop, as seen by threads of another addon. Soon after wake() it calls a JavaScript function. It is
// created by wakers.cc. It is a plain structure without C++ classes, because the other addon has its own copies of
// those.
#pragma once

namespace nd {

struct Waker {
  void (*wake)(Waker* self);  // any thread
};

}  // namespace nd
