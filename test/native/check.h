// Tests in plain C++. TEST(name) { … } registers itself. A failed CHECK or CHECK_EQ is counted and the test continues.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};
inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}
inline std::atomic<int> failures{0};  // checks run on many threads
inline std::atomic<long> checks{0};
inline const char* note = "";  // what a loop is working on, for messages
inline uint64_t noteNumber = 0;

// The number of seeds of a random test. With a sanitizer, each seed takes ten times as long, so only an eighth of them
// run.
constexpr uint64_t seeds(uint64_t all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (all + 7) / 8;
#else
  return all;
#endif
}

struct Registration {
  Registration(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

// Not inlined, because the thousands of checks compile faster as calls.
[[gnu::noinline]] inline bool report(bool ok, const char* what, const char* file, int line, long long a = 0,
                                     long long b = 0, bool values = false) {
  checks++;
  if (ok) return true;
  if (++failures <= 50) {
    std::fprintf(stderr, "%s:%d: FAILED: %s", file, line, what);
    if (values) std::fprintf(stderr, " (%lld, %lld)", a, b);
    if (*note) std::fprintf(stderr, " [%s %llu]", note, static_cast<unsigned long long>(noteNumber));
    std::fprintf(stderr, "\n");
  }
  return false;
}

[[gnu::noinline]] inline bool reportEqual(long long a, long long b, const char* what, const char* file, int line) {
  return report(a == b, what, file, line, a, b, true);
}

// Runs the tests whose name contains the first argument, except those whose name begins with `except`.
inline int runAll(int argc, char** argv, const char* except = nullptr) {
  int ran = 0;
  for (const Test& t : tests()) {
    if (argc > 1 && !std::strstr(t.name, argv[1])) continue;
    if (except && std::strncmp(t.name, except, std::strlen(except)) == 0) continue;
    const int before = failures;
    note = "";
    t.run();
    ran++;
    if (failures != before) std::fprintf(stderr, "FAILED: %s\n", t.name);
  }
  std::printf("%d tests, %ld checks, %d failed\n", ran, checks.load(), failures.load());
  return failures == 0 && (ran > 0 || except) ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                \
  static void test_##name();                                      \
  static check::Registration register_##name(#name, test_##name); \
  static void test_##name()
#define CHECK(condition) check::report(!!(condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(a, b) \
  check::reportEqual(static_cast<long long>(a), static_cast<long long>(b), #a " == " #b, __FILE__, __LINE__)
