// Opening, querying and closing devices.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/verbs_hca.h"

namespace nd::verbs {

namespace {

// Each request of a queue pair has a slot in a ring of that size.
constexpr uint32_t kMostRequests = 8192, kMostSges = 30, kMostInline = 512;

uint32_t powerBelow(int64_t most, uint32_t limit) {
  uint32_t n = 1;
  while (n * 2 <= limit && int64_t{n} * 2 <= most) n *= 2;
  return n;
}

uint32_t atMost(int64_t value, uint32_t limit) {
  return value < 0 ? 0 : value > int64_t{limit} ? limit : static_cast<uint32_t>(value);
}

}  // namespace

Tables& Tables::all() {
  static Tables* instance = new Tables;
  return *instance;
}

void Tables::keep(Device* device) {
  std::lock_guard<std::mutex> lock(mutex_);
  devices_.push_back(device);
}

int accessOf(uint32_t access) {
  unsigned out = 0;
  if (access & abi::kAccessLocalWrite) out |= kAccessLocalWriteBit;
  if (access & abi::kAccessRemoteWriteBit) out |= kRemoteWriteBit;
  if (access & abi::kAccessRemoteRead) out |= kRemoteReadBit;
  if (access & abi::kAccessRemoteAtomic) out |= kRemoteAtomicBit;
  if (access & abi::kAccessMwBind) out |= kMwBindBit;
  return static_cast<int>(out);
}

std::vector<std::string> VerbsHca::deviceNames() const {
  std::vector<std::string> names;
  int count = 0;
  ibv_device** list = lib_.ibv_get_device_list(&count);
  if (list == nullptr) return names;
  for (int i = 0; i < count; ++i) names.emplace_back(list[i]->name);
  lib_.ibv_free_device_list(list);
  return names;
}

// Limits that apply to every queue pair. Providers grant less than the attributes state, depending on the other sizes.
bool VerbsHca::probe(Device& device, std::string* why) {
  ibv_pd* pd = lib_.ibv_alloc_pd(device.context);
  ibv_cq* cq = pd != nullptr ? lib_.ibv_create_cq(device.context, 1, nullptr, nullptr, 0) : nullptr;
  int error = errno;
  ibv_qp* qp = nullptr;
  HcaLimits& limits = device.limits;
  limits.maxQpWr = powerBelow(int64_t{device.attributes.max_qp_wr} - 1, kMostRequests);
  limits.maxSge = atMost(device.attributes.max_sge, kMostSges);
  limits.maxInline = kMostInline;
  ibv_qp_init_attr create{};
  while (cq != nullptr && qp == nullptr) {
    create = ibv_qp_init_attr{};
    create.send_cq = create.recv_cq = cq;
    create.qp_type = kQptIbRc;
    create.cap = {limits.maxQpWr + 1, limits.maxQpWr, limits.maxSge, limits.maxSge, limits.maxInline};
    qp = lib_.ibv_create_qp(pd, &create);
    error = errno;
    if (qp != nullptr) break;
    if (limits.maxInline > 0) {
      limits.maxInline = limits.maxInline > 32 ? limits.maxInline / 2 : 0;
    } else if (limits.maxSge > 4) {
      limits.maxSge /= 2;
      limits.maxInline = 64;
    } else if (limits.maxQpWr > 16) {
      limits.maxQpWr /= 2;
      limits.maxInline = 64;
    } else {
      break;
    }
  }
  if (qp != nullptr) {
    if (create.cap.max_inline_data > limits.maxInline)
      limits.maxInline = std::min(create.cap.max_inline_data, kMostInline);
    lib_.ibv_destroy_qp(qp);
    device.resizes = statusOf(lib_.ibv_resize_cq(cq, 2)) != Status::kNotSupported;
  } else {
    *why = device.name + " cannot create a queue pair (" + std::strerror(error) + ")";
  }
  if (cq != nullptr) lib_.ibv_destroy_cq(cq);
  if (pd != nullptr) lib_.ibv_dealloc_pd(pd);
  return qp != nullptr;
}

namespace {

void setLimits(Device& device) {
  const ibv_device_attr& a = device.attributes;
  HcaLimits& limits = device.limits;
  constexpr uint32_t kMany = 0x7FFFFFFF;
  limits.maxQp = atMost(a.max_qp, kMany);
  limits.maxCq = atMost(a.max_cq, kMany);
  limits.maxPd = atMost(a.max_pd, kMany);
  limits.maxMr = atMost(a.max_mr, kMany);
  const bool windows =
      (a.device_cap_flags & (kCapMemWindow2A | kCapMemWindow2B)) != 0 && device.context->ops.alloc_mw != nullptr;
  limits.maxMw = windows ? atMost(a.max_mw, kMany) : 0;
  limits.maxSrq = atMost(a.max_srq, kMany);
  limits.maxAh = a.max_ah > 0 ? atMost(a.max_ah, kMany) : device.iwarp ? 0 : 65536;  // some drivers report 0
  limits.maxGroups = atMost(a.max_mcast_grp, kMany);
  limits.maxGroupQps = atMost(a.max_mcast_qp_attach, kMany);
  limits.maxAttached = atMost(a.max_total_mcast_qp_attach, kMany);
  limits.maxPkeys = a.max_pkeys;
  limits.maxCqEntries = powerBelow(int64_t{a.max_cqe} - kSpareCqes, 1u << 20);
  limits.maxReadDepth =
      atMost(std::min(a.max_qp_rd_atom, a.max_qp_init_rd_atom > 0 ? a.max_qp_init_rd_atom : a.max_qp_rd_atom), 255);
  limits.maxMrSize = std::min<uint64_t>(a.max_mr_size, 1ull << 46);
  // siw reports 1; a driver that reports 0 has no limit of its own.
  limits.maxSrqWr = std::min(limits.maxQpWr, static_cast<uint32_t>(std::max(a.max_srq_wr, 0)));
  limits.maxSrqSge = std::min(limits.maxSge, static_cast<uint32_t>(std::max(a.max_srq_sge, 0)));
  limits.maxReadSge = a.max_sge_rd > 0 ? atMost(a.max_sge_rd, limits.maxSge) : limits.maxSge;
}

}  // namespace

Device* VerbsHca::openDevice(const std::string& name, std::string* why) {
  if (devices_.size() == kMostDevices) {
    *why = "too many devices were opened since this kernel started";
    return nullptr;
  }
  int count = 0;
  ibv_device** list = lib_.ibv_get_device_list(&count);
  ibv_device* found = nullptr;
  for (int i = 0; list != nullptr && i < count; ++i)
    if (name == list[i]->name) found = list[i];
  if (found == nullptr) {
    *why = "libibverbs does not list the device " + name +
           " (is its provider installed? It is in the package ibverbs-providers. Is the device in this "
           "network namespace? `rdma system` shows whether devices are exclusive to one)";
    if (list != nullptr) lib_.ibv_free_device_list(list);
    return nullptr;
  }
  auto device = std::make_unique<Device>();
  device->lib = &lib_;
  device->name = name;
  device->events = events_;
  device->iwarp = found->transport_type == kTransportIwarp;
  device->context = lib_.ibv_open_device(found);
  const int error = errno;
  const std::string node = std::string("/dev/infiniband/") + found->dev_name;
  lib_.ibv_free_device_list(list);
  if (device->context == nullptr) {
    *why = node + " cannot be opened (" + std::strerror(error) + ")" + openingHelp(error, "ib_uverbs");
    return nullptr;
  }
  device->channel = lib_.ibv_create_comp_channel(device->context);
  if (device->channel == nullptr || lib_.ibv_query_device(device->context, &device->attributes) != 0 ||
      !probe(*device, why)) {
    if (why->empty()) *why = name + " cannot be queried (" + std::strerror(errno) + ")";
    if (device->channel != nullptr) lib_.ibv_destroy_comp_channel(device->channel);
    lib_.ibv_close_device(device->context);
    return nullptr;
  }
  setLimits(*device);
  device->number = static_cast<uint32_t>(devices_.size()) + 1;
  Device* const out = device.release();
  Tables::all().keep(out);
  devices_.push_back(out);
  const uint64_t tag = uint64_t{out->number} << 2;
  if (!watch(out->channel->fd, tag | 1) || !watch(out->context->async_fd, tag | 2)) {
    *why = "the events of " + name + " cannot be monitored (" + std::strerror(errno) + ")";
    closeDevice(*out);
    return nullptr;
  }
  return out;
}

Device* VerbsHca::device(uint32_t number) {
  Device* const found = number >= 1 && number <= devices_.size() ? devices_[number - 1] : nullptr;
  return found != nullptr && found->context != nullptr ? found : nullptr;
}

bool VerbsHca::queryPort(Device& device, uint32_t port, PortInfo* out) {
  constexpr size_t kMostGids = 1024;
  if (device.context == nullptr || port == 0 || port > device.attributes.phys_port_cnt) return false;
  if (lib_.ibv_query_port(device.context, static_cast<uint8_t>(port), &out->attributes) != 0) return false;
  out->gids.resize(kMostGids);
  const ssize_t found =
      lib_._ibv_query_gid_table(device.context, out->gids.data(), out->gids.size(), 0, sizeof(ibv_gid_entry));
  out->gids.resize(found > 0 ? static_cast<size_t>(found) : 0);
  const auto other = [&](const ibv_gid_entry& entry) { return entry.port_num != port; };
  out->gids.erase(std::remove_if(out->gids.begin(), out->gids.end(), other), out->gids.end());
  for (int i = 0; i < out->attributes.pkey_tbl_len; ++i) {
    uint16_t pkey = 0;  // big-endian
    if (lib_.ibv_query_pkey(device.context, static_cast<uint8_t>(port), i, &pkey) != 0) break;
    out->pkeys.push_back(static_cast<uint16_t>(pkey >> 8 | pkey << 8));
  }
  while (out->pkeys.size() > 1 && out->pkeys.back() == 0) out->pkeys.pop_back();
  return true;
}

void VerbsHca::closeDevice(Device& device) {
  // The event thread releases it first.
  std::lock_guard<std::mutex> lock(device.threads);
  if (device.context == nullptr) return;
  unwatch(device.channel->fd);
  unwatch(device.context->async_fd);
  Tables& all = Tables::all();
  std::unique_lock<std::shared_mutex> keys(device.keys);
  // Windows are destroyed before queue pairs, because rdma_rxe takes 50 seconds to destroy a queue pair with a bound
  // window.
  all.mws.forEach([&](MwObject& mw) {
    if (mw.device == &device && mw.mw != nullptr) device.context->ops.dealloc_mw(std::exchange(mw.mw, nullptr));
  });
  device.windows.clear();
  keys.unlock();  // posting threads take it together with a queue pair's lock
  all.qps.forEach([&](QpObject& qp) {
    std::lock_guard<std::mutex> own(qp.mutex);
    if (qp.device != &device || qp.qp == nullptr) return;
    drainOf(qp);
    if (qp.state.load() != abi::kQpsReset) qp.publish(abi::kQpsError);
    flushHeld(qp, true);
    lib_.ibv_destroy_qp(std::exchange(qp.qp, nullptr));
    qp.errorEntered = true;
  });
  all.cqs.forEach(settleLater);
  all.srqs.forEach([&](SrqObject& srq) {
    std::lock_guard<std::mutex> own(srq.mutex);
    if (srq.device == &device && srq.srq != nullptr) lib_.ibv_destroy_srq(std::exchange(srq.srq, nullptr));
  });
  all.cqs.forEach([&](CqObject& cq) {
    std::lock_guard<std::mutex> own(cq.mutex);
    if (cq.device == &device && cq.cq != nullptr) lib_.ibv_destroy_cq(std::exchange(cq.cq, nullptr));
  });
  keys.lock();
  all.ahs.forEach([&](AhObject& ah) {
    if (ah.device == &device && ah.ah != nullptr) lib_.ibv_destroy_ah(std::exchange(ah.ah, nullptr));
  });
  for (auto& [lkey, region] : device.regions)
    if (region.mr != nullptr) lib_.ibv_dereg_mr(std::exchange(region.mr, nullptr));
  all.pds.forEach([&](PdObject& pd) {
    if (pd.device == &device && pd.pd != nullptr) lib_.ibv_dealloc_pd(std::exchange(pd.pd, nullptr));
  });
  lib_.ibv_destroy_comp_channel(std::exchange(device.channel, nullptr));
  lib_.ibv_close_device(std::exchange(device.context, nullptr));
}

}  // namespace nd::verbs
