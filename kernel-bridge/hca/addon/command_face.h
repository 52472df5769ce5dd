// The commands of an HCA in JavaScript, for both addons (RawCommands of hca/command-words.ts). A command takes the
// arguments of its C++ function in the same order: numbers and flags as arguments, everything else in words and bytes
// (hca_words.h). It returns its status, and further results begin at word 0. Only the attributes that the preceding
// mask names are read.
#pragma once
#include <tuple>
#include <type_traits>

#include "hca_words.h"
#include "objects/hca_commands.h"
#include "own_methods.h"

namespace nd::js {

// Reads the arguments of a call one after the other. An extension reads its own types with a readArgument() in its
// namespace.
struct Arguments {
  const Napi::CallbackInfo& info;
  const Words& words;
  size_t at = 0, gidAt = 0;
  uint32_t latest = 0;  // a 32-bit number

  bool number(uint32_t* out) {
    const bool good = toU32(info.Env(), info[at++], out);
    latest = *out;
    return good;
  }
  Gid gid() {
    const size_t from = gidAt;
    gidAt += sizeof(Gid::raw);
    return words.gid(from);
  }
};

inline bool readArgument(Arguments& from, uint32_t* out) { return from.number(out); }
inline bool readArgument(Arguments& from, uint64_t* out) { return toUint(from.info.Env(), from.info[from.at++], out); }
inline bool readArgument(Arguments& from, bool* out) { return toBool(from.info.Env(), from.info[from.at++], out); }
inline bool readArgument(Arguments& from, Gid* out) { return *out = from.gid(), true; }
inline bool readArgument(Arguments& from, Path* out) { return from.words.path(out); }
inline bool readArgument(Arguments& from, QpCreate* out) { return from.words.read(out); }
inline bool readArgument(Arguments& from, SrqCreate* out) { return from.words.read(out); }
inline bool readArgument(Arguments& from, QpAttributes* out) { return from.words.attributes(from.latest, out); }
inline bool readArgument(Arguments& from, SrqAttributes* out) { return from.words.read(out, from.latest); }
inline bool readArgument(Arguments& from, const uint8_t** mad) { return *mad = from.words.mad(), true; }
inline bool readArgument(Arguments& from, ConnectMasks* out) {
  uint32_t all = 0;
  for (uint32_t& mask : *out) {
    if (!from.number(&mask)) return false;
    all |= mask;
  }
  from.latest = all & ~(qpmask::kState | qpmask::kCurrentState);  // each step implies its own states
  return true;
}

// Writes the results of a command, apart from its status, one after the other. An extension writes its own types with a
// writeResult().
struct Results {
  const Words& words;
  size_t at = 0, gidAt = 0;

  template <typename... T>
  void numbers(T... values) {
    ((words.words[at++] = static_cast<double>(values)), ...);
  }
  void gid(const Gid& gid) {
    std::memcpy(words.bytes + gidAt, gid.raw.data(), gid.raw.size());
    gidAt += gid.raw.size();
  }
};

template <typename T>
std::enable_if_t<std::is_integral_v<T>> writeResult(Results& to, T value) {
  to.numbers(value);
}
inline void writeResult(Results& to, const SrqAttributes& a) { to.numbers(a.entries, a.limit, a.sge); }
inline void writeResult(Results& to, const PkeyViolations& v) { to.numbers(v.badPkeys, v.badQkeys); }

// A parameter of a command during the call: an argument, or, behind a pointer, a result that is 0 unless the command
// sets it.
template <typename T>
struct Parameter {
  std::decay_t<T> value{};
  bool read(Arguments& from) { return readArgument(from, &value); }
  const std::decay_t<T>& passed() { return value; }
  void write(Results&) const {}
};
template <typename T>
struct Parameter<T*> {
  T value{};
  bool read(Arguments&) { return true; }
  T* passed() { return &value; }
  void write(Results& to) const { writeResult(to, value); }
};
template <>
struct Parameter<const uint8_t*> {
  const uint8_t* value = nullptr;
  bool read(Arguments& from) { return readArgument(from, &value); }
  const uint8_t* passed() { return value; }
  void write(Results&) const {}
};

class CommandFace {
 public:
  // The JavaScript object with the commands. An HCA adds the commands that it has in addition to HcaCommands.
  class Members {
   public:
    Members(CommandFace& face, Napi::Object self, Napi::Object commands)
        : face_(face), self_(self), commands_(commands) {}
    template <auto kCommand>
    void add(const char* name) {
      addOwnFunction<&CommandFace::call<kCommand>>(commands_, self_, &face_, name);
    }
    template <typename T, Napi::Value (T::*kMethod)(const Napi::CallbackInfo&)>
    void add(T* native, const char* name) {
      addOwnMethod<T, kMethod>(commands_, self_, native, name);
    }

   private:
    CommandFace& face_;
    Napi::Object self_, commands_;
  };

  // Creates the words and bytes. Returns false if the thread is being terminated.
  bool open(Napi::Env env);
  // Adds `words`, `bytes` and `commands` to the object that wraps this face's owner. The commands run on `hca` until
  // close().
  Members define(Napi::Object self, HcaCommands* hca);
  void close() { hca_ = nullptr; }
  const Words& words() const { return words_; }

 private:
  template <auto kCommand>
  static Napi::Value call(const Napi::CallbackInfo& info) {
    return static_cast<CommandFace*>(info.Data())->run(info, kCommand);
  }
  template <typename Hca, typename... T>
  Napi::Value run(const Napi::CallbackInfo& info, Status (Hca::*command)(T...)) {
    std::tuple<Parameter<T>...> parameters;
    Status status = Status::kDeviceRemoved;
    if (auto* const hca = static_cast<Hca*>(hca_)) {
      Arguments from{info, words_};
      const bool good = std::apply([&](auto&... each) { return (each.read(from) && ...); }, parameters);
      status = good ? std::apply([&](auto&... each) { return (hca->*command)(each.passed()...); }, parameters)
                    : Status::kInvalidParameter;
    }
    Results to{words_};
    std::apply([&](auto&... each) { (each.write(to), ...); }, parameters);
    return statusToJs(info.Env(), status);
  }
  Napi::Value queryQp(const Napi::CallbackInfo& info);
  Napi::Value queryQpState(const Napi::CallbackInfo& info);

  HcaCommands* hca_ = nullptr;  // null: closed
  Words words_;                 // views of these two
  Napi::Reference<Napi::Float64Array> wordsArray_;
  Napi::Reference<Napi::Uint8Array> bytesArray_;
};

}  // namespace nd::js
