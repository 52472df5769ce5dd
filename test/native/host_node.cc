#include "host_node.h"

namespace hosttest {

Gid parseAddress(const std::string& text) {
  Gid gid;
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw.data() + 12, &v4, 4);
  } else {
    inet_pton(AF_INET6, text.c_str(), gid.raw.data());
  }
  return gid;
}

std::string addressText(const Gid& gid) {
  char text[64];
  if (gid.isV4()) inet_ntop(AF_INET, gid.raw.data() + 12, text, sizeof text);
  else inet_ntop(AF_INET6, gid.raw.data(), text, sizeof text);
  return text;
}

bool missteer(uint32_t index) {
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
  setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(4791);
  sock_filter program[] = {{BPF_RET | BPF_K, 0, 0, index}};
  sock_fprog attachment{1, program};
  const bool ok = bind(s, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
                  setsockopt(s, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &attachment, sizeof attachment) == 0;
  close(s);  // it was the last of the group, so the others keep their indexes
  return ok;
}

namespace {

void say(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(1, whole.data(), whole.size()) < 0) _exit(3);
}

// Messages that kernels receive while their process is in sendMad() are printed after its status.
thread_local std::string* heldBack = nullptr;

struct Kernel final : KernelPort {
  KernelId id = 0;
  void onMad(const PacketMeta& meta, bool, uint16_t pkey, const uint8_t m[256]) override {
    std::ostringstream out;
    out << "mad kernel=" << id << " attr=" << std::hex << mad::attribute(m) << " tag=" << wire::load32(m + 8)
        << " from=" << addressText(meta.source) << " to=" << addressText(meta.destination) << " pkey=" << pkey;
    if (heldBack != nullptr) *heldBack += "\n" + out.str();
    else say(out.str());
  }
  void onEvent(const HcaEvent&) override {}
};

// Sees the packets in place of the engine, which gets those for QP1.
struct Sink final : PacketSink {
  explicit Sink(Engine& e) : engine(e) {}
  Engine& engine;
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override {
    if (wire::destinationQpn(bth) == wire::kGsiQpn) return engine.onPacket(meta, bth, length);
    const uint32_t pad = bth[1] >> 4 & 3, psn = wire::load24(bth + 9);
    bool good = length >= 12 + pad;
    for (uint32_t i = 12; good && i < length - pad; i++) good = bth[i] == pattern(psn, i - 12);
    for (uint32_t i = length - pad; good && i < length; i++) good = bth[i] == 0;
    std::ostringstream out;
    out << "packet qpn=" << std::hex << wire::destinationQpn(bth) << std::dec << " psn=" << psn
        << " bytes=" << length - 12 - pad << " good=" << good << " from=" << addressText(meta.source)
        << " to=" << addressText(meta.destination);
    say(out.str());
  }
  void onPeerProcessGone(uint32_t slot, bool orderly) override {
    say("gone " + std::to_string(slot) + (orderly ? " goodbye" : " lost"));
  }
};

void setOption(const std::string& argument, HostOptions* options) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return;
  const std::string key = argument.substr(0, equals), value = argument.substr(equals + 1);
  if (key == "link" && value == "wire") options->link = nd::LinkChoice::kWire;
  if (key == "icrc" && value == "exact") options->icrc = nd::IcrcCheck::kExact;
  if (key == "capture") options->capture = value;
  if (key == "seed") options->faults.seed = std::strtoull(value.c_str(), nullptr, 10);
  if (key == "drop") options->faults.drop = std::atof(value.c_str());
  if (key == "duplicate") options->faults.duplicate = std::atof(value.c_str());
  if (key == "reorder") options->faults.reorder = std::atof(value.c_str());
  if (key == "corrupt") options->faults.corrupt = std::atof(value.c_str());
  if (key == "dropReq") options->faults.dropMadCount[0] = static_cast<uint32_t>(std::atoi(value.c_str()));
}

struct Child {
  RealClock clock;
  Host host{clock};
  Engine engine{host, clock, EngineOptions()};
  Sink sink{engine};
  std::map<KernelId, std::unique_ptr<Kernel>> kernels;

  void command(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    std::ostringstream out;
    if (verb == "send") {  // send <source> <destination> <qpn> <count> <payload bytes>
      std::string source, destination;
      uint32_t qpn = 0, count = 0, bytes = 0;
      in >> source >> destination >> std::hex >> qpn >> std::dec >> count >> bytes;
      std::lock_guard<nd::EngineLock> guard(engine.lock());
      Path path;
      path.source = parseAddress(source);
      path.destination = parseAddress(destination);
      uint32_t accepted = 0;
      for (uint32_t n = 0; n < count; n++) {
        std::vector<uint8_t> payload(bytes);
        for (uint32_t i = 0; i < bytes; i++) payload[i] = pattern(n, i);
        OutPacket p;
        std::memset(p.header, 0, sizeof p.header);
        p.header[0] = 4;
        p.header[2] = p.header[3] = 0xff;
        p.header[5] = static_cast<uint8_t>(qpn >> 16);
        p.header[6] = static_cast<uint8_t>(qpn >> 8);
        p.header[7] = static_cast<uint8_t>(qpn);
        p.header[10] = static_cast<uint8_t>(n >> 8);
        p.header[11] = static_cast<uint8_t>(n);
        p.headerLength = 12;
        p.payloadLength = bytes;
        p.padLength = (4 - bytes % 4) % 4;
        p.header[1] = static_cast<uint8_t>(p.padLength << 4);
        // The payload is in two pieces, as from scattered memory.
        p.pieceCount = 2;
        p.pieces[0] = {payload.data(), bytes / 3};
        p.pieces[1] = {payload.data() + bytes / 3, bytes - bytes / 3};
        if (host.send(path, p)) accepted++;
        if (n % 16 == 15) host.flush();
      }
      host.flush();
      out << "sent " << accepted;
    } else if (verb == "mad") {  // mad <source> <destination> <attribute> <tag> <offset> <value as hex bytes>
      std::string source, destination, bytes;
      uint32_t attribute = 0, tag = 0;
      int offset = 0;  // the offset in the message; a negative one is in the header before it
      in >> source >> destination >> std::hex >> attribute >> tag;
      uint8_t m[256] = {1, 7, 2, 3};
      m[17] = static_cast<uint8_t>(attribute);
      for (int i = 0; i < 4; i++) m[8 + i] = static_cast<uint8_t>(tag >> (24 - 8 * i));
      while (in >> std::dec >> offset >> bytes) {
        const std::vector<uint8_t> value = fromHex(bytes);
        std::memcpy(m + 24 + offset, value.data(), value.size());
      }
      Path path;
      path.source = parseAddress(source);
      path.destination = parseAddress(destination);
      std::string heard;
      heldBack = &heard;
      const Status status = host.sendMad(path, m, 0xFFFF);
      heldBack = nullptr;
      out << "mad-status " << std::hex << static_cast<uint32_t>(status) << heard;
    } else if (verb == "kernel") {
      auto kernel = std::make_unique<Kernel>();
      engine.attachKernel(kernel.get(), &kernel->id);
      out << "kernel " << kernel->id << " base " << std::hex << host.commIdBase(kernel->id);
      kernels[kernel->id] = std::move(kernel);
    } else if (verb == "endkernel") {
      KernelId id = 0;
      in >> id;
      host.releaseKernel(id);
      engine.detachKernel(id);
      out << "ended";
    } else if (verb == "claim") {  // claim <kernel> <service hex> <address|*> <port>
      KernelId kernel = 0;
      uint32_t service = 0, port = 0, claim = 0;
      std::string address;
      in >> kernel >> std::hex >> service >> std::dec >> address >> port;
      const Gid gid = parseAddress(address);
      auto granted = static_cast<uint16_t>(port);
      const Status status = host.claimPort(kernel, service, address == "*" ? nullptr : &gid, &granted, &claim);
      out << "claim " << std::hex << static_cast<uint32_t>(status) << std::dec << " port " << granted << " id "
          << claim;
    } else if (verb == "open") {
      uint32_t claim = 0;
      in >> claim;
      out << "open " << std::hex << static_cast<uint32_t>(host.openPort(claim));
    } else if (verb == "unclaim") {
      uint32_t claim = 0;
      in >> claim;
      host.releasePort(claim);
      out << "unclaimed";
    } else if (verb == "watch") {
      uint32_t slot = 0;
      in >> slot;
      std::lock_guard<nd::EngineLock> guard(engine.lock());
      out << "watch " << (host.watchPeer(slot) == Status::kSuccess);
    } else if (verb == "missteer") {
      uint32_t index = 0;
      in >> index;
      out << "missteered " << missteer(index);
    } else if (verb == "local") {
      std::string address;
      in >> address;
      std::lock_guard<nd::EngineLock> guard(engine.lock());
      out << "local " << host.isLocal(parseAddress(address));
    } else if (verb == "counters") {
      const auto values = host.counters();
      for (size_t i = 0; i < values.size(); i++)
        out << (i ? "\n" : "") << "counter " << Host::counterNames()[i] << " " << values[i];
    } else if (verb == "sync") {
      out << "synced";
    } else if (verb == "join") {  // join <option>…
      HostOptions options;
      for (std::string word; in >> word;) setOption(word, &options);
      std::lock_guard<nd::EngineLock> guard(engine.lock());
      host.join(options);
      out << "joined";
    } else if (verb == "nocapture") {
      std::lock_guard<nd::EngineLock> guard(engine.lock());
      host.configure(HostOptions());
      out << "configured";
    } else {
      out << "unknown command " << verb;
    }
    say(out.str());
  }

  int run(const HostOptions& options) {
    const Status status = host.start(options, engine);
    if (status == Status::kSuccess) host.openWire();  // the wire is tested here
    std::ostringstream out;
    out << "started " << static_cast<uint32_t>(status) << " slot " << host.slot() << " wire " << host.wireReady()
        << " problem " << host.wireProblem();
    say(out.str());
    std::string buffer;
    for (;;) {
      uint64_t deadline;
      bool more;
      {
        std::lock_guard<nd::EngineLock> guard(engine.lock());
        more = host.poll(sink, 64);
        host.flush();
        deadline = host.nextDeadline();
      }
      pollfd fds[2] = {{0, POLLIN, 0}, {host.pollFd(), POLLIN, 0}};
      const uint64_t now = clock.now();
      int timeout = deadline == UINT64_MAX ? -1
                    : deadline <= now      ? 0
                                           : static_cast<int>((deadline - now) / 1000000 + 1);
      if (more) timeout = 0;
      ::poll(fds, 2, timeout);
      if (fds[0].revents == 0) continue;
      char bytes[4096];
      const ssize_t n = read(0, bytes, sizeof bytes);
      if (n <= 0) break;
      buffer.append(bytes, static_cast<size_t>(n));
      for (size_t end; (end = buffer.find('\n')) != std::string::npos; buffer.erase(0, end + 1))
        command(buffer.substr(0, end));
    }
    host.stop();
    return 0;
  }
};

}  // namespace

int nodeMain(int argc, char** argv) {
  signal(SIGPIPE, SIG_DFL);
  HostOptions options;
  for (int i = 2; i < argc; i++) setOption(argv[i], &options);
  auto child = std::make_unique<Child>();
  return child->run(options);
}

Node::Node(const std::string& options) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
  std::vector<std::string> words = {"node", "node"};
  std::istringstream in(options);
  for (std::string word; in >> word;) words.push_back(word);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  in_ = to[1];
  out_ = from[0];
  started = expect("started ");
  std::istringstream line(started);
  std::string word;
  line >> word >> word >> word >> slot;
}

Node::~Node() {
  if (pid_ > 0) quit();
}

void Node::tell(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(in_, whole.data(), whole.size()) < 0) report(false, "child takes commands", __FILE__, __LINE__);
}

bool Node::readMore(int timeoutMs) {
  pollfd fd = {out_, POLLIN, 0};
  if (::poll(&fd, 1, timeoutMs) <= 0) return false;
  char bytes[65536];
  const ssize_t n = read(out_, bytes, sizeof bytes);
  if (n <= 0) return false;
  partial_.append(bytes, static_cast<size_t>(n));
  for (size_t end; (end = partial_.find('\n')) != std::string::npos; partial_.erase(0, end + 1))
    lines_.push_back(partial_.substr(0, end));
  return true;
}

std::string Node::expect(const std::string& prefix) {
  for (;;) {
    while (!lines_.empty()) {
      const std::string line = lines_.front();
      lines_.pop_front();
      if (line.compare(0, prefix.size(), prefix) == 0) return line;
    }
    if (!readMore(kTimeoutMs)) {
      // Each of the following lines would wait as long again. The children end with their input.
      report(false, ("child says '" + prefix + "'").c_str(), __FILE__, __LINE__);
      std::exit(1);
    }
  }
}

long Node::counter(const std::string& name) {
  const std::string line = ask("counters", "counter " + name + " ");
  const long value = line.empty() ? -1 : std::atol(line.c_str() + 8 + name.size() + 1);
  ask("sync", "synced");
  return value;
}

long Node::counterFrom(const std::string& name, long least) {
  const uint64_t end = RealClock().now() + kTimeoutNs;
  long value = counter(name);
  while (value < least && RealClock().now() < end) value = counter(name);
  return value;
}

int Node::countUntilNow(const std::string& prefix) {
  tell("sync");
  int count = 0;
  for (;;) {
    while (!lines_.empty()) {
      const std::string line = lines_.front();
      lines_.pop_front();
      if (line == "synced") return count;
      if (line.compare(0, prefix.size(), prefix) == 0) count++;
    }
    if (!readMore(kTimeoutMs)) return -1;
  }
}

void Node::kill() {
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  close(in_);
  close(out_);
}

void Node::quit() {
  close(in_);
  int status = 0;
  waitpid(pid_, &status, 0);
  report(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child ends well", __FILE__, __LINE__);
  close(out_);
  pid_ = -1;
}

bool Node::alive() { return ::kill(pid_, 0) == 0 && !ask("sync", "synced").empty(); }

}  // namespace hosttest
