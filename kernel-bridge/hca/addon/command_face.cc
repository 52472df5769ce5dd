#include "command_face.h"

namespace nd::js {

bool CommandFace::open(Napi::Env env) {
  const Napi::Float64Array words = Napi::Float64Array::New(env, Words::kCount);
  const Napi::Uint8Array bytes = Napi::Uint8Array::New(env, Words::kBytes);
  if (anyEmpty({words, bytes})) return false;
  wordsArray_ = Napi::Persistent(words);
  bytesArray_ = Napi::Persistent(bytes);
  words_ = {wordsArray_.Value().Data(), bytesArray_.Value().Data()};
  return true;
}

CommandFace::Members CommandFace::define(Napi::Object self, HcaCommands* hca) {
  hca_ = hca;
  const Napi::Object commands = Napi::Object::New(self.Env());
  if (!anyEmpty({self, commands})) {
    self.Set("words", wordsArray_.Value());
    self.Set("bytes", bytesArray_.Value());
    self.Set("commands", commands);
  }
  Members members(*this, self, commands);
  using C = HcaCommands;
  members.add<&C::allocatePd>("allocatePd");
  members.add<&C::deallocatePd>("deallocatePd");
  members.add<&C::registerMr>("registerMr");
  members.add<&C::deregisterMr>("deregisterMr");
  members.add<&C::allocateMw>("allocateMw");
  members.add<&C::deallocateMw>("deallocateMw");
  members.add<&C::createCq>("createCq");
  members.add<&C::resizeCq>("resizeCq");
  members.add<&C::destroyCq>("destroyCq");
  members.add<&C::armCq>("armCq");
  members.add<&C::listenCq>("listenCq");
  members.add<&C::createQp>("createQp");
  members.add<&C::modifyQp>("modifyQp");
  members.add<&C::connectQp>("connectQp");
  members.add<CommandFace, &CommandFace::queryQp>(this, "queryQp");
  members.add<CommandFace, &CommandFace::queryQpState>(this, "queryQpState");
  members.add<&C::destroyQp>("destroyQp");
  members.add<&C::createSrq>("createSrq");
  members.add<&C::modifySrq>("modifySrq");
  members.add<&C::querySrq>("querySrq");
  members.add<&C::destroySrq>("destroySrq");
  members.add<&C::createAh>("createAh");
  members.add<&C::destroyAh>("destroyAh");
  members.add<&C::attachMulticast>("attachMulticast");
  members.add<&C::detachMulticast>("detachMulticast");
  return members;
}

Napi::Value CommandFace::queryQp(const Napi::CallbackInfo& info) {
  Handle qp;
  QpAttributes attributes;
  Status status = hca_ != nullptr ? Status::kInvalidParameter : Status::kDeviceRemoved;
  if (hca_ != nullptr && toU32(info.Env(), info[0], &qp)) status = hca_->queryQp(qp, &attributes);
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("status", statusToJs(info.Env(), status));
  out.Set("attributes", attributesToJs(info.Env(), attributes));
  return out;
}

Napi::Value CommandFace::queryQpState(const Napi::CallbackInfo& info) {
  Handle qp;
  QpAttributes attributes;
  const bool good = hca_ != nullptr && toU32(info.Env(), info[0], &qp);
  const bool known = good && hca_->queryQp(qp, &attributes) == Status::kSuccess;
  return Napi::Number::New(info.Env(), known ? static_cast<double>(attributes.state) : -1.0);
}

}  // namespace nd::js
