// Tests of the names of this user's processes that run another dialect (slots/other_dialects.h): which names are slots
// and RDMA ports, and who owns them.
#include <algorithm>

#include "host_test.h"
#include "platform/local_names.h"
#include "platform/os.h"
#include "schema/numbers.h"
#include "slots/other_dialects.h"
#include "slots/rdma_ports.h"

using namespace hosttest;
using namespace nd;

namespace {

constexpr uint32_t kOther = kDialect + 1, kService = 1;
const std::string other = std::to_string(kOther) + "/";

// A listener of this process, of any dialect.
struct Named {
  UniqueFd listener;
  explicit Named(const std::string& whole) { HOST_CHECK(listenLocal(whole, &listener) == 0); }
};

void slots() {
  const Named ours(ownName("slot/2")), lost(userName(other + "slot/254")), unread(userName(other + "slot/x"));
  const Named port(userName(other + "port/1")), joined(userName(std::to_string(kOther) + "slot/5"));
  const Named tooLarge(userName("99999999999/slot/6")), longer(userName(other + "slot/7more"));
  HOST_CHECK(!otherDialectsRun());
  HOST_CHECK(otherDialects().empty());
  const Named numbered(userName(other + "slot/3")), older(userName("slot/4~1a"));
  HOST_CHECK(otherDialectsRun());
  std::vector<OtherDialect> found = otherDialects();
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.slot < b.slot; });
  HOST_CHECK(found.size() == 2);
  if (found.size() != 2) return;
  HOST_CHECK(found[0].dialect == kOther && found[0].slot == 3 && found[0].process == ownProcessId());
  HOST_CHECK(found[1].dialect == 0 && found[1].slot == 4 && found[1].process == ownProcessId());
}

// A name whose listener no longer accepts is not reported.
void ended() {
  const Named slot(userName(other + "slot/3"));
  refuseLocal(slot.listener.get());
  HOST_CHECK(otherDialects().empty());
}

void ports() {
  Gid here, there;
  here.raw[15] = 1;
  there.raw[15] = 2;
  const Named ours(ownName(portName(kService, 70, nullptr)));
  const Named all(userName(other + portName(kService, 71, nullptr)));
  const Named one(userName(other + portName(kService, 72, &here) + "~1a"));
  OtherDialect found;
  HOST_CHECK(!otherDialectAt(kService, 70, here, &found));
  HOST_CHECK(otherDialectAt(kService, 71, there, &found));
  HOST_CHECK(found.dialect == kOther && found.process == ownProcessId());
  HOST_CHECK(!otherDialectAt(kService + 1, 71, there, &found));
  HOST_CHECK(otherDialectAt(kService, 72, here, &found));
  HOST_CHECK(!otherDialectAt(kService, 72, there, &found));
}

}  // namespace

int main() {
  privateNetwork();
  slots();
  ended();
  ports();
  return finish("host_dialects");
}
