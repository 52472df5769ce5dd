// Runs the transport's tests. If the first argument is "--single", they run over links that have the fast path of small
// packets, without the tests of long windows, whose messages of 1 MiB do not use that path and which take half of the
// total time.
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
