// Tests processes of this user that return arbitrary bytes when their statistics are requested (slots/observing.h). The
// requester accepts a text of at most 2 MiB that can no longer change, or none. It keeps nothing, and meanwhile
// receives the texts of others. Also tests more requesters than are allowed.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include <functional>
#include <thread>

#include "host_impostor.h"
#include "platform/pages.h"
#include "slots/observing.h"
#include "slots/slots.h"

using namespace hosttest;

namespace {

using Answer = Observed::Answer;

constexpr uint64_t kPage = 4096, kMost = 2u << 20;
const std::string kText = "{\"form\":1}";
// The seals of a file that can neither be resized nor written any more, as sealPages() leaves it.
constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

int descriptors() {
  int n = 0;
  for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

// Creates a file that begins with the text.
UniqueFd fileOf(uint64_t bytes, int seals, const std::string& text = kText, bool whole = true) {
  UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  HOST_CHECK(ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
  if (whole && bytes != 0) HOST_CHECK(posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) == 0);
  if (!text.empty()) HOST_CHECK(pwrite(fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  HOST_CHECK(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

void sendAs(int to, FrameKind kind, const void* body, size_t length, const std::vector<int>& fds = {}) {
  Frame frame;
  frame.kind = kind;
  uint8_t header[Frame::kHeaderBytes];
  frame.encodeHeader(header);
  iovec pieces[] = {{header, sizeof header}, {const_cast<void*>(body), length}};
  sendBytes(to, pieces, 2, fds);
}

void say(int to, uint64_t bytes, uint64_t fileBytes, const std::vector<int>& fds) {
  const ObservedText body{bytes, fileBytes};
  sendAs(to, FrameKind::kObserved, &body, sizeof body, fds);
}

// The reply has its own file.
void sayWith(int to, uint64_t bytes, uint64_t fileBytes, uint64_t size = kPage, int seals = kSealed,
             bool whole = true) {
  const UniqueFd file = fileOf(size, seals, size == 0 ? std::string() : kText, whole);
  say(to, bytes, fileBytes, {file.get()});
}

struct Case {
  const char* name;
  std::function<void(int)> answers;
  Answer expected;
  std::string text = {};
};

std::string pageWith(const std::string& text) { return text + std::string(kPage - text.size(), '\0'); }

const Case kCases[] = {
    {"a text", [](int to) { sayWith(to, kText.size(), kPage); }, Answer::kText, kText},
    {"a text as long as its file", [](int to) { sayWith(to, kPage, kPage); }, Answer::kText, pageWith(kText)},
    {"no bytes", [](int to) { say(to, 0, 0, {}); }, Answer::kRefused},
    {"no bytes of a file", [](int to) { sayWith(to, 0, kPage); }, Answer::kRefused},
    {"a text without a file", [](int to) { say(to, kText.size(), kPage, {}); }, Answer::kSilent},
    {"two files",
     [](int to) {
       const UniqueFd one = fileOf(kPage, kSealed), other = fileOf(kPage, kSealed);
       say(to, kText.size(), kPage, {one.get(), other.get()});
     },
     Answer::kSilent},
    {"more files than anything has",
     [](int to) {
       const UniqueFd one = fileOf(kPage, kSealed);
       say(to, kText.size(), kPage, {one.get(), one.get(), one.get()});
     },
     Answer::kSilent},
    {"a text longer than its file", [](int to) { sayWith(to, kPage + 1, kPage); }, Answer::kSilent},
    {"a text of all bytes there are", [](int to) { sayWith(to, UINT64_MAX, kPage); }, Answer::kSilent},
    {"a file of all bytes there are", [](int to) { sayWith(to, kText.size(), UINT64_MAX); }, Answer::kSilent},
    {"both of all bytes there are", [](int to) { sayWith(to, UINT64_MAX, UINT64_MAX); }, Answer::kSilent},
    {"a file longer than it says", [](int to) { sayWith(to, kText.size(), kPage, 2 * kPage); }, Answer::kSilent},
    {"a file shorter than it says", [](int to) { sayWith(to, kText.size(), 2 * kPage); }, Answer::kSilent},
    {"an empty file", [](int to) { sayWith(to, kText.size(), kPage, 0); }, Answer::kSilent},
    {"a file beyond the limit", [](int to) { sayWith(to, kText.size(), kMost + kPage, kMost + kPage); },
     Answer::kSilent},
    {"a file with a hole", [](int to) { sayWith(to, kText.size(), kMost, kMost, kSealed, false); }, Answer::kSilent},
    {"a file that can shrink", [](int to) { sayWith(to, kText.size(), kPage, kPage, F_SEAL_GROW | F_SEAL_WRITE); },
     Answer::kSilent},
    {"a file that can be written", [](int to) { sayWith(to, kText.size(), kPage, kPage, F_SEAL_GROW | F_SEAL_SHRINK); },
     Answer::kSilent},
    {"a socket instead of a file", [](int to) { say(to, kText.size(), kPage, {to}); }, Answer::kSilent},
    {"a folder instead of a file",
     [](int to) {
       const UniqueFd folder(open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
       say(to, kText.size(), kPage, {folder.get()});
     },
     Answer::kSilent},
    {"a body that is too short",
     [](int to) {
       const UniqueFd file = fileOf(kPage, kSealed);
       const ObservedText body{kText.size(), kPage};
       sendAs(to, FrameKind::kObserved, &body, sizeof body - 1, {file.get()});
     },
     Answer::kSilent},
    {"a body that is too long",
     [](int to) {
       const UniqueFd file = fileOf(kPage, kSealed);
       const ObservedText body[64] = {{kText.size(), kPage}};
       sendAs(to, FrameKind::kObserved, body, sizeof body, {file.get()});
     },
     Answer::kSilent},
    {"another frame",
     [](int to) {
       const UniqueFd file = fileOf(kPage, kSealed);
       const ObservedText body{kText.size(), kPage};
       sendAs(to, FrameKind::kPairOffer, &body, sizeof body, {file.get()});
     },
     Answer::kSilent},
    {"a frame that there is not", [](int to) { sendAs(to, static_cast<FrameKind>(200), nullptr, 0); }, Answer::kSilent},
    {"no frame", [](int to) { HOST_CHECK(send(to, "hello", 5, MSG_NOSIGNAL) == 5); }, Answer::kSilent},
    {"a frame of another version",
     [](int to) {
       uint8_t bytes[Frame::kHeaderBytes + sizeof(ObservedText)] = {kDialect + 1,
                                                                    static_cast<uint8_t>(FrameKind::kObserved)};
       HOST_CHECK(send(to, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes);
     },
     Answer::kSilent},
    {"the end", [](int) {}, Answer::kSilent},
};

// A hostile process that only owns a name, and has received the request.
struct Asked {
  const uint32_t slot;
  UniqueFd listener, asker;
  explicit Asked(uint32_t own) : slot(own) { HOST_CHECK(listenLocal(ownName(slotName(own)), &listener) == 0); }
  void isAsked() {
    pollfd waits{listener.get(), POLLIN, 0};
    HOST_CHECK(::poll(&waits, 1, kTimeoutMs) == 1);
    asker.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    uint8_t bytes[Frame::kMaxBytes];
    const ssize_t n = recv(asker.get(), bytes, sizeof bytes, 0);
    Frame frame;
    HOST_CHECK(n > 0 && frame.decode(bytes, static_cast<uint32_t>(n)) && frame.kind == FrameKind::kObserve &&
               frame.bodyLength == 0);
  }
};

std::vector<Observed> observed(const std::function<void()>& meanwhile, uint64_t longestNs = kTimeoutNs) {
  std::vector<Observed> all;
  std::thread asking([&] { all = observeProcesses(longestNs); });
  meanwhile();
  asking.join();
  return all;
}

const Observed* ofSlot(const std::vector<Observed>& all, uint32_t slot) {
  for (const Observed& one : all)
    if (one.slot == slot) return &one;
  return nullptr;
}

// Each of these processes runs together with one that replies correctly.
void answersOfAllKinds() {
  for (const Case& one : kCases) {
    const int before = descriptors();
    {
      Asked hostile(7), honest(9);
      const auto all = observed([&] {
        hostile.isAsked();
        honest.isAsked();
        one.answers(hostile.asker.get());
        hostile.asker.reset();
        sayWith(honest.asker.get(), kText.size(), kPage);
        honest.asker.reset();
      });
      const Observed *first = ofSlot(all, 7), *second = ofSlot(all, 9);
      const bool right = all.size() == 2 && first != nullptr && first->answer == one.expected &&
                         first->text == one.text && first->process == static_cast<ProcessId>(getpid());
      report(right, one.name, __FILE__, __LINE__);
      HOST_CHECK(second != nullptr && second->answer == Answer::kText && second->text == kText);
    }
    report(descriptors() == before, one.name, __FILE__, __LINE__);
  }
}

// The first message counts as the reply. Later ones are ignored.
void answersTwice() {
  Asked twice(7);
  const auto all = observed([&] {
    twice.isAsked();
    say(twice.asker.get(), 0, 0, {});
    sayWith(twice.asker.get(), kText.size(), kPage);
    twice.asker.reset();
  });
  HOST_CHECK(all.size() == 1 && all[0].answer == Answer::kRefused && all[0].text.empty());
}

// A process that never replies costs the requester's time limit, and no more. The other process's reply arrives.
void neverAnswers() {
  Asked silent(7), honest(9);
  const uint64_t begun = clockNow();
  const auto all = observed(
      [&] {
        silent.isAsked();
        honest.isAsked();
        sayWith(honest.asker.get(), kText.size(), kPage);
      },
      100'000'000);
  HOST_CHECK(clockNow() - begun >= 100'000'000);
  HOST_CHECK(all.size() == 2 && all[0].answer == Answer::kSilent);
  HOST_CHECK(all.size() == 2 && all[1].answer == Answer::kText && all[1].text == kText);
}

// This layer treats any bytes as text. The layer above parses them.
void anyBytes() {
  std::string bytes;
  for (int i = 0; i < 256; i++) bytes.push_back(static_cast<char>(i));
  Asked one(7);
  const auto all = observed([&] {
    one.isAsked();
    const UniqueFd file = fileOf(kPage, kSealed, bytes);
    say(one.asker.get(), bytes.size(), kPage, {file.get()});
  });
  HOST_CHECK(all.size() == 1 && all[0].text == bytes);
}

// Returns the reply to a requester: the length of the text in bytes, 0 if the request was refused, or -1 if there is no
// reply.
int64_t heard(int fd) {
  uint8_t bytes[Frame::kHeaderBytes + sizeof(ObservedText) + 1];
  UniqueFd fds[kMostPassed];
  uint32_t count = 0;
  const int64_t n = receiveLocal(fd, bytes, sizeof bytes, fds, &count);
  Frame frame;
  if (n <= 0 || !frame.decode(bytes, static_cast<uint32_t>(n)) || frame.kind != FrameKind::kObserved) return -1;
  ObservedText body;
  HOST_CHECK(frame.bodyLength == sizeof body);
  std::memcpy(&body, frame.body, sizeof body);
  HOST_CHECK(count == (body.bytes != 0 ? 1u : 0u));
  return static_cast<int64_t>(body.bytes);
}

struct Way {
  UniqueFd asker, asked;
  Way() {
    int ends[2];
    HOST_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    asker.reset(ends[0]);
    asked.reset(ends[1]);
  }
};

// Requesters beyond the limit are refused immediately, and one that has its reply makes room. Replies without a
// requester, or a second reply to the same one, are dropped.
void manyAskers() {
  const int before = descriptors();
  {
    Observers observers;
    std::vector<Way> ways(Observers::kMostClients + 4);
    std::vector<uint32_t> numbers;
    for (size_t i = 0; i < Observers::kMostClients; i++) numbers.push_back(observers.accept(ways[i].asked.get()));
    for (const uint32_t number : numbers) HOST_CHECK(number != 0);
    for (size_t i = Observers::kMostClients; i < ways.size(); i++) {
      HOST_CHECK(observers.accept(ways[i].asked.get()) == 0);
      HOST_CHECK(heard(ways[i].asker.get()) == 0);
    }
    HOST_CHECK(heard(ways[0].asker.get()) == -1);
    observers.reply(0, kText.data(), kText.size());
    observers.reply(UINT32_MAX, kText.data(), kText.size());
    observers.reply(numbers[1], kText.data(), kText.size());
    observers.reply(numbers[1], kText.data(), kText.size());
    HOST_CHECK(heard(ways[1].asker.get()) == static_cast<int64_t>(kText.size()) && heard(ways[1].asker.get()) == -1);
    ways[2].asker.reset();  // this requester has not waited
    observers.reply(numbers[2], kText.data(), kText.size());
    observers.reply(numbers[3], nullptr, 0);
    HOST_CHECK(heard(ways[3].asker.get()) == 0);
    for (int i = 0; i < 3; i++) HOST_CHECK(observers.accept(ways.back().asked.get()) != 0);
    HOST_CHECK(observers.accept(ways.back().asked.get()) == 0);
    observers.end();
    observers.reply(numbers[0], kText.data(), kText.size());
    HOST_CHECK(heard(ways[0].asker.get()) == -1);
  }
  HOST_CHECK(descriptors() == before);
}

}  // namespace

int main() {
  signal(SIGPIPE, SIG_IGN);
  privateNetwork();
  answersOfAllKinds();
  answersTwice();
  neverAnswers();
  anyBytes();
  manyAskers();
  return finish("host_observing");
}
