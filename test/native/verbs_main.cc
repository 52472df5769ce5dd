// The tests of the layer above real HCAs, with a fake of rdma-core.
#include "check.h"

int main(int argc, char** argv) { return check::runAll(argc, argv); }
