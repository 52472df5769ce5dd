// A thread's event loop, as seen by threads of another addon: soon after wake() it calls a JavaScript function. Created
// by wakers.cc. A plain structure without C++ classes, because the other addon has its own copies of those.
#pragma once

namespace nd {

struct Waker {
  void (*wake)(Waker* self);  // any thread
};

}  // namespace nd
