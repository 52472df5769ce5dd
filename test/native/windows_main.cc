// The tests of platform/windows. With other arguments, the program runs the part of a test in another process
// (windows_processes.h).
#include "check.h"
#include "windows_processes.h"

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "part") == 0) return processes::runPart(argv[2], argv[3]);
  return check::runAll(argc, argv);
}
