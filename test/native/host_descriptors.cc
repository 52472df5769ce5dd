// Tests of descriptors: peers send some to the process, or its descriptor table is full.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <set>

#include "host_node.h"
#include "host_test.h"
#include "platform/local_names.h"
#include "platform/local_socket.h"
#include "slots/frame.h"

using namespace hosttest;

namespace {

std::set<int> descriptorsOf(Node& node) {
  std::set<int> all;
  DIR* fds = opendir(("/proc/" + std::to_string(node.pid()) + "/fd").c_str());
  while (const dirent* entry = fds != nullptr ? readdir(fds) : nullptr)
    if (entry->d_name[0] != '.') all.insert(std::atoi(entry->d_name));
  if (fds != nullptr) closedir(fds);
  return all;
}

// A frame carries more descriptors than it may, or some where none is expected. None stays open.
void tooMany() {
  Node a;
  const std::string name = nd::ownName("slot/") + std::to_string(a.slot);
  nd::UniqueFd connection;
  nd::ProcessId pid;
  const size_t before = descriptorsOf(a).size();
  HOST_CHECK(nd::connectLocal(name, &connection, &pid) == 0);
  uint8_t bytes[nd::Frame::kHeaderBytes];
  nd::Frame frame;
  frame.kind = nd::FrameKind::kStray;
  frame.encodeHeader(bytes);
  long sent = 0;
  for (uint32_t count = 1; count <= 8; count++) {
    for (int i = 0; i < 10; i++, sent++) {
      alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
      iovec piece = {bytes, sizeof bytes};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(count * sizeof(int));
      const int one = connection.get();
      for (uint32_t k = 0; k < count; k++) std::memcpy(CMSG_DATA(c) + k * sizeof(int), &one, sizeof one);
      HOST_CHECK(sendmsg(connection.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof bytes));
    }
  }
  while (a.counter("slot_bad_frames") < sent && a.alive()) continue;
  HOST_CHECK(descriptorsOf(a).size() == before + 1);
}

// A connection for which there is no descriptor waits. Accepting it is retried only now and then, not as often as a
// thread can.
void fullTable() {
  Node a;
  a.ask("kernel", "kernel 1");
  HOST_CHECK(a.ask("claim 1 106 * 7000", "claim").find("claim 0 ") != std::string::npos);
  const rlimit none{static_cast<rlim_t>(*descriptorsOf(a).rbegin() + 1), 4096}, enough{4096, 4096};
  for (const std::string& name : {nd::ownName("slot/") + std::to_string(a.slot), nd::ownName("port/0106/7000/*")}) {
    HOST_CHECK(prlimit(a.pid(), RLIMIT_NOFILE, &none, nullptr) == 0);
    const long failures = a.counter("slot_no_descriptor");
    // Opens descriptors until the gaps between them are filled.
    std::vector<nd::UniqueFd> connections;
    while (a.counter("slot_no_descriptor") == failures && a.alive()) {
      nd::ProcessId pid;
      HOST_CHECK(nd::connectLocal(name, &connections.emplace_back(), &pid) == 0);
      poll(nullptr, 0, 20);
    }
    const long bad = a.counter("slot_bad_frames");
    uint8_t bytes[nd::Frame::kHeaderBytes];
    nd::Frame frame;
    frame.kind = nd::FrameKind::kStray;
    frame.encodeHeader(bytes);
    const int last = connections.back().get();
    HOST_CHECK(::send(last, bytes, sizeof bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof bytes));
    while (a.counter("slot_no_descriptor") < failures + 4 && a.alive()) poll(nullptr, 0, 10);
    HOST_CHECK(a.counter("slot_no_descriptor") < failures + 100);
    HOST_CHECK(a.counter("slot_bad_frames") == bad);
    HOST_CHECK(prlimit(a.pid(), RLIMIT_NOFILE, &enough, nullptr) == 0);
    while (a.counter("slot_bad_frames") == bad && a.alive()) poll(nullptr, 0, 10);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "node") == 0) return nodeMain(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  for (int fd = 3; fd < 1024; fd++) close(fd);  // descriptors left open by a shell leave gaps in the children's tables
  privateNetwork();
  tooMany();
  fullTable();
  return finish("host_descriptors");
}
