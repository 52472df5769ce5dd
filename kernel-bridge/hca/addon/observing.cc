#include "observing.h"

#include <algorithm>

#include "convert.h"
#include "hca.h"
#include "slots/observing.h"
#include "slots/other_dialects.h"

namespace nd::js {
namespace {

// Returns the numbers of each record, one record after the other.
template <typename T>
Napi::Float64Array numbersOf(Napi::Env env, const std::vector<T>& records) {
  Napi::Float64Array numbers = Napi::Float64Array::New(env, T::kNumbers * records.size());
  size_t at = 0;
  for (const T& record : records) record.each([&](auto value) { numbers[at++] = static_cast<double>(value); });
  return numbers;
}

const char* nameOf(Observed::Answer answer) {
  switch (answer) {
    case Observed::Answer::kText: return "text";
    case Observed::Answer::kRefused: return "refused";
    case Observed::Answer::kSilent: return "silent";
    case Observed::Answer::kOtherDialect: return "otherVersion";
  }
  return "";
}

// Queries other processes on a thread-pool thread, which may block.
class ObserveQuery final : public Napi::AsyncWorker {
 public:
  ObserveQuery(Napi::Env env, uint64_t longestNs)
      : Napi::AsyncWorker(env, "networkdirect:observe"),
        answered_(Napi::Promise::Deferred::New(env)),
        longestNs_(longestNs) {}
  Napi::Promise promise() const { return answered_.Promise(); }
  void Execute() override { all_ = observeProcesses(longestNs_); }
  void OnOK() override {
    Napi::Env env = Env();
    Napi::Array out = Napi::Array::New(env);
    for (const Observed& one : all_) {
      Napi::Object record = Napi::Object::New(env);
      record.Set("slot", one.slot);
      record.Set("pid", static_cast<double>(one.process));
      record.Set("answer", nameOf(one.answer));
      // The result is bytes, because the text has not been checked to be UTF-8.
      Napi::Uint8Array bytes = Napi::Uint8Array::New(env, one.text.size());
      std::copy(one.text.begin(), one.text.end(), bytes.Data());
      record.Set("text", bytes);
      out.Set(out.Length(), record);
    }
    answered_.Resolve(out);
  }
  void OnError(const Napi::Error& error) override { answered_.Reject(error.Value()); }

 private:
  Napi::Promise::Deferred answered_;
  uint64_t longestNs_;
  std::vector<Observed> all_;
};

}  // namespace

Napi::Value NativeHca::statistics(const Info& info) {
  Napi::Env env = info.Env();
  uint32_t most;
  if (!open_ || !toU32(env, info[0], &most)) return env.Undefined();
  const Statistics all = engine_->statistics(most);
  constexpr size_t kGidBytes = sizeof(Gid::raw);
  Napi::Uint8Array addresses = Napi::Uint8Array::New(env, all.queuePairs.size() * 2 * kGidBytes);
  size_t at = 0;
  for (const QpStatistics& qp : all.queuePairs)
    for (const Gid* gid : {&qp.source, &qp.destination}) {
      std::memcpy(addresses.Data() + at, gid->raw.data(), kGidBytes);
      at += kGidBytes;
    }
  Napi::Object out = Napi::Object::New(env);
  out.Set("queuePairs", numbersOf(env, all.queuePairs));
  out.Set("addresses", addresses);
  out.Set("memory", numbersOf(env, all.memory));
  out.Set("sharedReceived", all.sharedReceived);
  return out;
}

void NativeHca::replyToObserver(const Info& info) {
  uint32_t number;
  Bytes text;
  if (!open_ || !toU32(info.Env(), info[0], &number)) return;
  if (toBytes(info.Env(), info[1], &text)) host_->replyToObserver(number, text.data, text.length);
  else host_->replyToObserver(number, nullptr, 0);
}

Napi::Value observeProcessesJs(const Napi::CallbackInfo& info) {
  uint32_t longestMs;
  if (!toU32(info.Env(), info[0], &longestMs)) {
    napi_throw_type_error(info.Env(), nullptr,
                          "observeProcesses(longestMs): `longestMs` must be a number of milliseconds");
    return info.Env().Undefined();
  }
  auto* query = new ObserveQuery(info.Env(), uint64_t(longestMs) * 1'000'000);
  const Napi::Promise promise = query->promise();
  query->Queue();
  return promise;
}

Napi::Value otherDialectAtJs(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t service, port;
  Bytes address;
  Gid gid;
  if (!toU32(env, info[0], &service) || !toU32(env, info[1], &port) || !toBytes(env, info[2], &address) ||
      address.length != sizeof gid.raw) {
    napi_throw_type_error(
        env, nullptr,
        "otherDialectAt(service, port, address): `service` and `port` must be numbers, `address` 16 bytes");
    return env.Undefined();
  }
  std::memcpy(gid.raw.data(), address.data, sizeof gid.raw);
  OtherDialect found;
  if (!otherDialectAt(service, static_cast<uint16_t>(port), gid, &found)) return env.Undefined();
  return Napi::Number::New(env, static_cast<double>(found.process));
}

}  // namespace nd::js
