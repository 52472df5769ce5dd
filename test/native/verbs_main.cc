// The tests of the door to real HCAs, over a fake of rdma-core.
#include "check.h"

int main(int argc, char** argv) { return check::runAll(argc, argv); }
