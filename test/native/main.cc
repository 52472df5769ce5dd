// The transport's tests. With "--single" first, over links that have the fast path of small packets, and without the
// tests of long windows: their messages of 1 MiB do not use that path, and they take half of the total time.
#include "check.h"
#include "world_net.h"

int main(int argc, char** argv) {
  const char* except = nullptr;
  if (argc > 1 && std::strcmp(argv[1], "--single") == 0) {
    world::linksTakeAlone = true;
    except = "long_window_";
    argc--;
    argv++;
  }
  return check::runAll(argc, argv, except);
}
