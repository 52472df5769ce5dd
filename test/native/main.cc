// The transport's tests. With "--single" first, over links that have the fast path of small packets.
#include "check.h"
#include "world_net.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--single") == 0) {
    world::linksTakeAlone = true;
    argc--;
    argv++;
  }
  return check::runAll(argc, argv);
}
