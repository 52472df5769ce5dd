// Actions in the middle of a copy, triggered by the first access to a page.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <utility>

#include "check.h"

namespace world {

const uint64_t kPage = uint64_t(sysconf(_SC_PAGESIZE));

// Calls `then` when a page is first accessed, in the middle of that access.
struct Trap {
  static inline Trap* armed = nullptr;
  uint8_t* page;
  std::function<void()> then;
  struct sigaction before {};
  Trap(uint8_t* at, std::function<void()> what) : page(at), then(std::move(what)) {
    armed = this;
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      Trap* const trap = armed;
      const auto* touched = static_cast<uint8_t*>(info->si_addr);
      if (trap == nullptr || touched < trap->page || touched >= trap->page + kPage) std::abort();
      armed = nullptr;
      CHECK(mprotect(trap->page, kPage, PROT_READ | PROT_WRITE) == 0);
      trap->then();
    };
    CHECK(sigaction(SIGSEGV, &action, &before) == 0);
    CHECK(mprotect(page, kPage, PROT_NONE) == 0);
  }
  ~Trap() {
    CHECK(armed == nullptr);  // the page was accessed
    sigaction(SIGSEGV, &before, nullptr);
  }
};

}  // namespace world
