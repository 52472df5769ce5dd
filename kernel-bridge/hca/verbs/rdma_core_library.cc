#include "verbs/rdma_core_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

namespace nd::verbs {

namespace {

struct Loaded {
  Library functions;
  bool complete = false;
  std::string why;
};

void* open(const char* variable, const char* name, const char* package, std::string* why) {
  const char* other = std::getenv(variable);
  const char* file = other != nullptr && other[0] != '\0' ? other : name;
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* error = dlerror();
  *why = std::string(file) + " cannot be loaded (" + (error != nullptr ? error : "no reason reported") +
         "); it is part of rdma-core: on Debian and Ubuntu, install the package " + package;
  return nullptr;
}

template <typename Function>
bool find(void* handle, const char* file, const char* name, Function* out, std::string* why) {
  *out = reinterpret_cast<Function>(dlsym(handle, name));
  if (*out != nullptr) return true;
  *why = std::string(file) + " has no function " + name + ": this package needs rdma-core 32 or newer";
  return false;
}

bool load(Library* out, std::string* why) {
  // Both libraries stay loaded until the process ends, because their providers have their own threads and hooks.
  void* verbs = open("NETWORKDIRECT_IBVERBS", "libibverbs.so.1", "libibverbs1", why);
  if (verbs == nullptr) return false;
  void* cm = open("NETWORKDIRECT_RDMACM", "librdmacm.so.1", "librdmacm1", why);
  if (cm == nullptr) return false;
#define ND_FIND_VERBS(name, result, parameters) \
  if (!find(verbs, "libibverbs.so.1", #name, &out->name, why)) return false;
#define ND_FIND_CM(name, result, parameters) \
  if (!find(cm, "librdmacm.so.1", #name, &out->name, why)) return false;
  ND_VERBS_SYMBOLS(ND_FIND_VERBS)
  ND_RDMACM_SYMBOLS(ND_FIND_CM)
  return true;
}

}  // namespace

const Library* library(std::string* why) {
  static std::mutex mutex;
  static Loaded* loaded = new Loaded;
  std::lock_guard<std::mutex> lock(mutex);
  // Loading is tried again after a failure, because the package may have been installed in the meantime.
  if (!loaded->complete) {
    loaded->why.clear();
    loaded->complete = load(&loaded->functions, &loaded->why);
  }
  if (why != nullptr) *why = loaded->why;
  return loaded->complete ? &loaded->functions : nullptr;
}

}  // namespace nd::verbs
