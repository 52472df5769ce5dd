// The transport's tests. With "--alone" first, over links that have the straight way of small packets.
#include "check.h"
#include "world_net.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--alone") == 0) {
    world::linksTakeAlone = true;
    argc--;
    argv++;
  }
  return check::runAll(argc, argv);
}
