#include "slots/other_dialects.h"

#include <cstdlib>

#include "schema/numbers.h"
#include "platform/local_names.h"
#include "platform/local_socket.h"
#include "slots/rdma_ports.h"
#include "slots/slots.h"

namespace nd {
namespace {

// Reads and removes a decimal number at the start of `text`. Returns false if there is none.
bool takeNumber(std::string* text, uint32_t* number) {
  char* end = nullptr;
  if (text->empty() || (*text)[0] < '0' || (*text)[0] > '9') return false;
  const unsigned long value = std::strtoul(text->c_str(), &end, 10);
  if (value > UINT32_MAX) return false;
  *number = static_cast<uint32_t>(value);
  text->erase(0, static_cast<size_t>(end - text->c_str()));
  return true;
}

// A name of another dialect without its prefix, which is its owner's name for the same object.
struct OtherName {
  uint32_t dialect;
  std::string what, whole;
};

std::vector<OtherName> otherNames() {
  std::vector<OtherName> found;
  const std::string user = userName("");
  for (const LocalListener& l : listLocalListeners(user).value_or(std::vector<LocalListener>())) {
    if (l.owner == LocalListener::Owner::kStranger) continue;
    OtherName name{0, l.name, user + l.name};
    if (takeNumber(&name.what, &name.dialect)) {
      if (name.dialect == kDialect || name.what.empty() || name.what[0] != '/') continue;
      name.what.erase(0, 1);
    }
    found.push_back(std::move(name));
  }
  return found;
}

// Returns the slot that a name claims, in its usual form or as a variant because another user holds that form.
bool slotIn(const std::string& what, uint32_t* slot) {
  const std::string prefix = kSlotPrefix;
  if (what.compare(0, prefix.size(), prefix) != 0) return false;
  std::string rest = what.substr(prefix.size());
  return takeNumber(&rest, slot) && *slot < Slots::kMax && (rest.empty() || rest[0] == kBesides);
}

// The owner sees a connection that closes, as from any process that looks for another one. Returns false if the name no
// longer has an owner, or if its owner is another user.
bool identify(const OtherName& name, OtherDialect* found) {
  UniqueFd connection;
  found->dialect = name.dialect;
  const int error = connectLocal(name.whole, &connection, &found->process);
  return error == 0 || error == EAGAIN;
}

}  // namespace

bool otherDialectsRun() {
  uint32_t slot;
  for (const OtherName& name : otherNames())
    if (slotIn(name.what, &slot)) return true;
  return false;
}

std::vector<OtherDialect> otherDialects() {
  std::vector<OtherDialect> all;
  for (const OtherName& name : otherNames()) {
    OtherDialect one;
    if (slotIn(name.what, &one.slot) && identify(name, &one)) all.push_back(one);
  }
  return all;
}

bool otherDialectAt(uint32_t service, uint16_t port, const Gid& address, OtherDialect* found) {
  const std::string claims[] = {portName(service, port, &address), portName(service, port, nullptr)};
  for (const OtherName& name : otherNames())
    for (const std::string& claim : claims)
      if (name.what.substr(0, name.what.find(kBesides)) == claim && identify(name, found)) return true;
  return false;
}

}  // namespace nd
