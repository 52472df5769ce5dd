// The DLL's entry point: IND2Provider, directly or through a class factory.
#include "adapter.h"
#include "addresses.h"

namespace nd2 {

class Provider final : public Com<IND2Provider, Kind::Provider> {
 public:
  HRESULT STDMETHODCALLTYPE QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) override {
    const Call call(*this, "IND2Provider::QueryAddressList");
    if (call.failed()) return call.status();
    return outputAddressList(list, bytes);
  }

  HRESULT STDMETHODCALLTYPE ResolveAddress(const sockaddr* address, ULONG bytes, UINT64* id) override {
    const Call call(*this, "IND2Provider::ResolveAddress");
    if (call.failed()) return call.status();
    if (id == nullptr) violation("a null pointer for the id");
    const auto copy = copyAddress(address, bytes);
    if (!copy || !isLocal(*copy) || id == nullptr) return result(INVALID_ADDRESS);
    *id = ADAPTER_ID;
    return result(SUCCESS);
  }

  HRESULT STDMETHODCALLTYPE OpenAdapter(REFIID iid, UINT64 id, void** adapter) override {
    const Call call(*this, "IND2Provider::OpenAdapter");
    if (call.failed()) return call.status();
    const HRESULT wrong = checkMaking(Kind::Adapter, iid, adapter);
    if (wrong != S_OK) return wrong;
    if (modes.removed != 0) return result(DEVICE_REMOVED);
    if (id != ADAPTER_ID) return result(INVALID_PARAMETER);
    if (modes.single != 0) {
      for (const auto& [com, object] : objects()) {
        if (object->kind() != Kind::Adapter || !object->held()) continue;
        auto* const open = static_cast<Adapter*>(object);
        open->AddRef();
        return give(open, adapter);
      }
    }
    return give(new Adapter, adapter);
  }
};

class Factory final : public Com<IClassFactory, Kind::Factory> {
 public:
  HRESULT STDMETHODCALLTYPE CreateInstance(IUnknown* outer, REFIID iid, void** out) override {
    const Call call(*this, "IClassFactory::CreateInstance");
    if (call.failed()) return call.status();
    if (outer != nullptr) return CLASS_E_NOAGGREGATION;
    const HRESULT wrong = checkMaking(Kind::Provider, iid, out);
    return wrong != S_OK ? wrong : give(new Provider, out);
  }
  HRESULT STDMETHODCALLTYPE LockServer(BOOL) override { return S_OK; }
};

}  // namespace nd2

extern "C" __declspec(dllexport) HRESULT STDMETHODCALLTYPE DllGetClassObject(REFCLSID, REFIID iid, void** out) {
  const nd2::Lock lock;
  nd2::entered("DllGetClassObject");
  if (const auto failure = nd2::injectedFailure("DllGetClassObject")) return *failure;
  if (out == nullptr) return nd2::result(nd2::INVALID_PARAMETER);
  *out = nullptr;
  if (nd2::sameId(iid, nd2::IID_ClassFactory)) return nd2::give(new nd2::Factory, out);
  if (nd2::sameId(iid, nd2::IID_Provider) && nd2::modes.factory == 0) return nd2::give(new nd2::Provider, out);
  return nd2::result(nd2::NO_INTERFACE);
}

extern "C" __declspec(dllexport) HRESULT STDMETHODCALLTYPE DllCanUnloadNow() {
  const nd2::Lock lock;
  return nd2::liveObjects(nullptr) == 0 ? S_OK : S_FALSE;
}
