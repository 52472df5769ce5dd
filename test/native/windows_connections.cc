// Tests of connections between processes of one user: which are admitted, what is passed along, and how they end.
#include "platform/windows/system.h"

#include <sddl.h>

#include <cerrno>

#include "check.h"
#include "platform/event.h"
#include "platform/local_names.h"
#include "platform/mapping.h"
#include "platform/pages.h"
#include "platform/readiness.h"
#include "platform/windows/error_text.h"
#include "platform/windows/user_sid.h"
#include "windows_processes.h"

namespace {

using nd::Descriptor, nd::Piece, nd::Readiness, nd::UniqueFd;

constexpr uint64_t kTimeoutNs = 60'000'000'000;

bool waitFor(Descriptor what) { return nd::waitReadable(&what, 1, kTimeoutNs) != 0; }

std::string receiveText(Descriptor connection, UniqueFd* passed = nullptr, uint32_t* count = nullptr) {
  char bytes[64];
  for (;;) {
    const int64_t n = nd::receiveLocal(connection, bytes, sizeof bytes, passed, count);
    if (n >= 0) return std::string(bytes, static_cast<size_t>(n));
    if (n != -EAGAIN || !waitFor(connection)) return "none: " + std::to_string(n);
  }
}

int sendText(Descriptor connection, const std::string& text, const Descriptor* passed = nullptr, uint32_t count = 0) {
  const Piece piece = {const_cast<char*>(text.data()), text.size()};
  return nd::sendLocal(connection, &piece, 1, passed, count);
}

UniqueFd acceptOne(Descriptor listener) {
  UniqueFd accepted;
  Readiness set;
  set.add(listener, Readiness::kReadable, 1);
  int error = EAGAIN;
  while ((error = nd::acceptLocal(listener, &accepted)) == EAGAIN && waitFor(set.fd())) {
    Readiness::Event events[Readiness::kMostEvents];
    set.take(events);
  }
  CHECK_EQ(error, 0);
  set.remove(listener);
  return accepted;
}

// Returns the access list of an object, as the OS reports it.
std::string accessOf(HANDLE object) {
  uint64_t room[128];
  DWORD bytes = 0;
  wchar_t* text = nullptr;
  if (GetKernelObjectSecurity(object, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, room, sizeof room,
                              &bytes) == 0 ||
      ConvertSecurityDescriptorToStringSecurityDescriptorW(
          room, SDDL_REVISION_1, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &text, nullptr) == 0)
    return "unknown " + std::to_string(GetLastError());
  const std::string list = nd::narrowOf(text);
  LocalFree(text);
  return list;
}

// Checks that the list has one entry, which grants something to this user.
bool admitsOwnUserAlone(const std::string& list) {
  const std::string end = ";;;" + nd::ownSid() + ")";
  const auto begin = list.find("(A;");
  return begin != std::string::npos && list.find('(', begin + 1) == std::string::npos && list.size() >= end.size() &&
         list.compare(list.size() - end.size(), end.size(), end) == 0;
}

std::string uniqueName(const char* what) { return nd::ownName(what + std::to_string(GetCurrentProcessId())); }

}  // namespace

PART(greeter) {
  UniqueFd connection;
  if (nd::connectLocal(word, &connection, nullptr) != 0) return 1;
  uint32_t count = 0;
  UniqueFd passed[nd::kMostPassed];
  if (sendText(connection.get(), "hello") != 0) return 2;
  if (receiveText(connection.get(), passed, &count) != "a section" || count != 1) return 3;
  nd::Mapping mapping;
  if (!mapping.open(passed[0].get(), 8192)) return 4;
  static_cast<uint8_t*>(mapping.get())[8191] = 42;
  if (sendText(connection.get(), "written") != 0) return 5;
  return receiveText(connection.get()).empty() ? 0 : 6;  // the connection has ended
}

TEST(two_processes_exchange_messages_and_a_section) {
  UniqueFd listener;
  const std::string name = uniqueName("test/");
  CHECK_EQ(nd::listenLocal(name, &listener), 0);
  processes::Process other("greeter", name);
  UniqueFd connection = acceptOne(listener.get());
  CHECK(receiveText(connection.get()) == "hello");
  nd::PeerIdentity peer;
  CHECK(nd::identifyPeer(connection.get(), &peer) && peer.ownUser);
  CHECK_EQ(peer.process, other.id());
  nd::Mapping mapping;
  UniqueFd section;
  CHECK(mapping.create(8192, &section));
  const Descriptor passed = section.get();
  CHECK_EQ(sendText(connection.get(), "a section", &passed, 1), 0);
  CHECK(receiveText(connection.get()) == "written");
  CHECK_EQ(static_cast<uint8_t*>(mapping.get())[8191], 42);
  connection.reset();
  CHECK_EQ(other.end(), 0);
}

TEST(a_copy_of_a_connection_sends_and_leaves_what_comes) {
  UniqueFd listener, client;
  const std::string name = uniqueName("copy/");
  CHECK_EQ(nd::listenLocal(name, &listener), 0);
  CHECK_EQ(nd::connectLocal(name, &client, nullptr), 0);
  UniqueFd server = acceptOne(listener.get());
  UniqueFd copy = nd::duplicateDescriptor(server.get());
  CHECK(copy.valid());
  CHECK_EQ(sendText(client.get(), "question"), 0);
  CHECK(receiveText(server.get()) == "question");
  CHECK_EQ(sendText(copy.get(), "answer"), 0);
  CHECK(receiveText(client.get()) == "answer");
  // When the other is closed, this one still holds the connection.
  server.reset();
  CHECK_EQ(sendText(copy.get(), "late"), 0);
  CHECK(receiveText(client.get()) == "late");
  copy.reset();
  CHECK(receiveText(client.get()).empty());
}

TEST(names_pipes_and_sections_admit_this_user_alone) {
  UniqueFd listener;
  const std::string name = uniqueName("access/");
  CHECK_EQ(nd::listenLocal(name, &listener), 0);
  const UniqueFd mutex(nd::descriptorOf(OpenMutexW(READ_CONTROL, FALSE, nd::wideOf("Global\\" + name).c_str())));
  CHECK(mutex.valid());
  CHECK(admitsOwnUserAlone(accessOf(nd::handleOf(mutex.get()))));
  const UniqueFd pipe(nd::descriptorOf(CreateFileW(nd::wideOf("\\\\.\\pipe\\" + name).c_str(),
                                                   GENERIC_READ | GENERIC_WRITE | READ_CONTROL, 0, nullptr,
                                                   OPEN_EXISTING, 0, nullptr)));
  CHECK(pipe.valid());
  CHECK(admitsOwnUserAlone(accessOf(nd::handleOf(pipe.get()))));
  nd::Mapping mapping;
  UniqueFd section;
  CHECK(mapping.create(4096, &section));
  CHECK(admitsOwnUserAlone(accessOf(nd::handleOf(section.get()))));
  nd::Pages pages;
  int error = 0;
  CHECK(nd::allocatePages(4096, &pages, &error) == nd::Status::kSuccess);
  CHECK(admitsOwnUserAlone(accessOf(nd::handleOf(pages.fd.get()))));
  nd::freePages(pages.base, pages.length);
}

TEST(processes_of_others_are_not_this_user_s) {
  CHECK(nd::isOwnUser(GetCurrentProcessId()));
  CHECK(nd::sidOf(GetCurrentProcessId()) == nd::ownSid());
  CHECK(nd::ownSid().compare(0, 4, "S-1-") == 0);
  CHECK(!nd::isOwnUser(0));
  CHECK(!nd::isOwnUser(0x7ffffffc));
}

TEST(the_list_has_a_name_as_long_as_somebody_listens) {
  nd::LocalNames names;
  const std::string what = "listed/" + std::to_string(GetCurrentProcessId());
  const auto has = [&] {
    const auto listed = names.list("listed/");
    for (const std::string& one : listed.value_or(std::vector<std::string>()))
      if ("listed/" + one == what) return true;
    return false;
  };
  UniqueFd listener, second;
  CHECK(!has());
  CHECK_EQ(names.claim(what, &listener), 0);
  CHECK(has());
  CHECK_EQ(names.claim(what, &second), EADDRINUSE);
  listener.reset();
  CHECK(!has());
  CHECK_EQ(names.claim(what, &second), 0);
}
