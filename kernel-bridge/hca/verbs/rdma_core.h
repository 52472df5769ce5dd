// The parts of the binary interface of libibverbs.so.1 and librdmacm.so.1 (rdma-core) that are used here. The
// structures have had this layout since 2012, and symbol versions preserve it. They are declared here so that building
// needs no headers of rdma-core, and one binary runs with every version. Sizes and offsets apply to 64-bit Linux.
#pragma once
#include <pthread.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace nd::verbs {

// ── libibverbs ──────────────────────────────────────────────────────────────────────────────────────────────
struct ibv_pd;
struct ibv_ah;
struct ibv_wq;
struct ibv_mw_bind;
struct ibv_context;

enum : int { kNodeRnic = 4 };
enum : int { kTransportIwarp = 1 };
enum : uint8_t { kLinkInfiniband = 1, kLinkEthernet = 2 };
enum : uint32_t { kGidRoceV2 = 2 };

struct ibv_device {
  void* ops[2];
  int node_type, transport_type;
  char name[64], dev_name[64], dev_path[256], ibdev_path[256];
};

struct ibv_device_attr {
  char fw_ver[64];
  uint64_t node_guid, sys_image_guid;  // big-endian
  uint64_t max_mr_size, page_size_cap;
  uint32_t vendor_id, vendor_part_id, hw_ver;
  int max_qp, max_qp_wr;
  unsigned device_cap_flags;
  int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom,
      max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp,
      max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr, max_srq,
      max_srq_wr, max_srq_sge;
  uint16_t max_pkeys;
  uint8_t local_ca_ack_delay, phys_port_cnt;
};
static_assert(sizeof(ibv_device_attr) == 232);
enum : unsigned { kCapMemWindow2A = 1u << 23, kCapMemWindow2B = 1u << 24, kCapMemManagement = 1u << 21 };

struct ibv_port_attr {
  int state, max_mtu, active_mtu, gid_tbl_len;
  uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
  uint16_t pkey_tbl_len, lid, sm_lid;
  uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state, link_layer,
      flags;
  uint16_t port_cap_flags2;
};
static_assert(sizeof(ibv_port_attr) == 52);

struct ibv_gid_entry {
  alignas(8) uint8_t gid[16];
  uint32_t gid_index, port_num, gid_type, ndev_ifindex;
};

struct ibv_comp_channel {
  ibv_context* context;
  int fd, refcnt;
};

struct ibv_cq {
  ibv_context* context;
  ibv_comp_channel* channel;
  void* cq_context;
  uint32_t handle;
  int cqe;
};

struct ibv_srq {
  ibv_context* context;
  void* srq_context;
};

struct ibv_qp {
  ibv_context* context;
  void* qp_context;
  ibv_pd* pd;
  ibv_cq *send_cq, *recv_cq;
  ibv_srq* srq;
  uint32_t handle, qp_num;
};
static_assert(offsetof(ibv_qp, qp_num) == 52);

struct ibv_mr {
  ibv_context* context;
  ibv_pd* pd;
  void* addr;
  size_t length;
  uint32_t handle, lkey, rkey;
};
static_assert(offsetof(ibv_mr, lkey) == 36);

struct ibv_mw {
  ibv_context* context;
  ibv_pd* pd;
  uint32_t rkey, handle;
  int type;
};
enum : int { kMwType2 = 2 };

enum : unsigned {
  kAccessLocalWriteBit = 1,
  kRemoteWriteBit = 2,
  kRemoteReadBit = 4,
  kRemoteAtomicBit = 8,
  kMwBindBit = 16
};

struct ibv_sge {
  uint64_t addr;
  uint32_t length, lkey;
};
static_assert(sizeof(ibv_sge) == 16);

struct ibv_recv_wr {
  uint64_t wr_id;
  ibv_recv_wr* next;
  ibv_sge* sg_list;
  int num_sge;
};
static_assert(sizeof(ibv_recv_wr) == 32);

enum : int {
  kWrWrite = 0,
  kWrWriteImm = 1,
  kWrSend = 2,
  kWrSendImm = 3,
  kWrRead = 4,
  kWrCompareSwap = 5,
  kWrFetchAdd = 6,
  kWrLocalInvalidate = 7,
  kWrBindMw = 8,
  kWrSendInvalidate = 9
};
enum : unsigned { kSendFence = 1, kSendSignaled = 2, kSendSolicited = 4, kSendInline = 8 };

struct ibv_mw_bind_info {
  ibv_mr* mr;
  uint64_t addr, length;
  unsigned mw_access_flags;
};

struct ibv_send_wr {
  uint64_t wr_id;
  ibv_send_wr* next;
  ibv_sge* sg_list;
  int num_sge, opcode;
  unsigned send_flags;
  uint32_t immediate;  // big-endian; or the rkey to invalidate
  union {
    struct {
      uint64_t remote_addr;
      uint32_t rkey;
    } rdma;
    struct {
      uint64_t remote_addr, compare_add, swap;
      uint32_t rkey;
    } atomic;
    struct {
      ibv_ah* ah;
      uint32_t remote_qpn, remote_qkey;
    } ud;
  } wr;
  uint32_t remote_srqn;
  struct {
    ibv_mw* mw;
    uint32_t rkey;
    ibv_mw_bind_info bind_info;
  } bind_mw;
};
static_assert(sizeof(ibv_send_wr) == 128 && offsetof(ibv_send_wr, wr) == 40 && offsetof(ibv_send_wr, bind_mw) == 80);

struct ibv_wc {
  uint64_t wr_id;
  int status, opcode;
  uint32_t vendor_err, byte_len;
  uint32_t immediate;  // big-endian; or the invalidated rkey
  uint32_t qp_num, src_qp;
  unsigned wc_flags;
  uint16_t pkey_index, slid;
  uint8_t sl, dlid_path_bits;
};
static_assert(sizeof(ibv_wc) == 48 && offsetof(ibv_wc, wc_flags) == 36);
enum : unsigned { kWcGrh = 1, kWcWithImm = 2, kWcIpChecksum = 4, kWcWithInv = 8 };
enum : int { kWcOpRecvImm = 129 };
enum : int {
  kIbSuccess = 0,
  kIbLocalLength = 1,
  kIbLocalQpOp = 2,
  kIbLocalProtection = 4,
  kIbFlushed = 5,
  kIbMwBind = 6,
  kIbBadResponse = 7,
  kIbLocalAccess = 8,
  kIbRemoteInvalidRequest = 9,
  kIbRemoteAccess = 10,
  kIbRemoteOp = 11,
  kIbRetryExceeded = 12,
  kIbRnrRetryExceeded = 13,
  kIbResponseTimeout = 20
};

struct ibv_qp_cap {
  uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};
struct ibv_qp_init_attr {
  void* qp_context;
  ibv_cq *send_cq, *recv_cq;
  ibv_srq* srq;
  ibv_qp_cap cap;
  int qp_type, sq_sig_all;
};
static_assert(sizeof(ibv_qp_init_attr) == 64);
enum : int { kQptIbRc = 2, kQptIbUc = 3, kQptIbUd = 4 };

struct ibv_ah_attr {
  alignas(8) uint8_t dgid[16];
  uint32_t flow_label;
  uint8_t sgid_index, hop_limit, traffic_class;
  uint16_t dlid;
  uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};
static_assert(sizeof(ibv_ah_attr) == 32 && offsetof(ibv_ah_attr, dlid) == 24);

struct ibv_qp_attr {
  int qp_state, cur_qp_state, path_mtu, path_mig_state;
  uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
  unsigned qp_access_flags;
  ibv_qp_cap cap;
  ibv_ah_attr ah_attr, alt_ah_attr;
  uint16_t pkey_index, alt_pkey_index;
  uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout,
      retry_cnt, rnr_retry, alt_port_num, alt_timeout;
  uint32_t rate_limit;
};
static_assert(sizeof(ibv_qp_attr) == 144);
enum : int {
  kQpState_ = 1,
  kQpCurState = 2,
  kQpDrainNotify = 4,
  kQpAccess = 8,
  kQpPkeyIndex = 0x10,
  kQpPort = 0x20,
  kQpQkey = 0x40,
  kQpAv = 0x80,
  kQpPathMtu = 0x100,
  kQpTimeout = 0x200,
  kQpRetryCnt = 0x400,
  kQpRnrRetry = 0x800,
  kQpRqPsn = 0x1000,
  kQpMaxRdAtomic = 0x2000,
  kQpMinRnrTimer = 0x8000,
  kQpSqPsn = 0x10000,
  kQpMaxDestRdAtomic = 0x20000,
  kQpDestQpn = 0x100000
};

struct ibv_srq_attr {
  uint32_t max_wr, max_sge, srq_limit;
};
struct ibv_srq_init_attr {
  void* srq_context;
  ibv_srq_attr attr;
};
enum : int { kSrqMaxWr = 1, kSrqLimit = 2 };

struct ibv_async_event {
  union {
    ibv_cq* cq;
    ibv_qp* qp;
    ibv_srq* srq;
    int port_num;
  } element;
  int event_type;
};
static_assert(sizeof(ibv_async_event) == 16);
enum : int {
  kEventCqErr = 0,
  kEventQpFatal = 1,
  kEventQpReqErr = 2,
  kEventQpAccessErr = 3,
  kEventCommEst = 4,
  kEventSqDrained = 5,
  kEventDeviceFatal = 8,
  kEventPortActive = 9,
  kEventPortErr = 10,
  kEventLidChange = 11,
  kEventPkeyChange = 12,
  kEventSrqErr = 14,
  kEventSrqLimit = 15,
  kEventLastWqe = 16,
  kEventGidChange = 18
};

struct ibv_context_ops {
  void* unused0[7];
  ibv_mw* (*alloc_mw)(ibv_pd*, int type);
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  int (*dealloc_mw)(ibv_mw*);
  void* unused1;
  int (*poll_cq)(ibv_cq*, int entries, ibv_wc*);
  int (*req_notify_cq)(ibv_cq*, int solicitedOnly);
  void* unused2[7];
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
  void* unused3[4];
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
  void* unused4[5];
};

struct ibv_context {
  ibv_device* device;
  ibv_context_ops ops;
  int cmd_fd, async_fd, num_comp_vectors;
  pthread_mutex_t mutex;
  void* abi_compat;
};
static_assert(offsetof(ibv_context, ops.poll_cq) == 96 && offsetof(ibv_context, ops.post_srq_recv) == 168 &&
              offsetof(ibv_context, ops.post_send) == 208 && offsetof(ibv_context, async_fd) == 268 &&
              sizeof(ibv_context) == 288 + sizeof(pthread_mutex_t));  // 40 bytes on x64, 48 on arm64

// ── librdmacm ───────────────────────────────────────────────────────────────────────────────────────────────
struct rdma_event_channel {
  int fd;
};

struct rdma_cm_id {
  ibv_context* verbs;
  rdma_event_channel* channel;
  void* context;
  ibv_qp* qp;
  sockaddr_storage source, destination;  // the rest holds other parts of the route, and QPs that are not created here
};
static_assert(offsetof(rdma_cm_id, source) == 32);

struct rdma_conn_param {
  const void* private_data;
  uint8_t private_data_len, responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
  uint32_t qp_num;
};
static_assert(sizeof(rdma_conn_param) == 24);

struct rdma_ud_param {
  const void* private_data;
  uint8_t private_data_len;
  ibv_ah_attr ah_attr;
  uint32_t qp_num, qkey;
};

struct rdma_cm_event {
  rdma_cm_id *id, *listen_id;
  int event, status;
  union {
    rdma_conn_param conn;
    rdma_ud_param ud;
  } param;
};
static_assert(sizeof(rdma_cm_event) == 80 && offsetof(rdma_cm_event, param) == 24);

enum : int { kPortSpaceTcp = 0x0106, kPortSpaceUdp = 0x0111 };
enum : int { kCmConnectRequest = 4, kCmConnectResponse = 5, kCmDeviceRemoval = 11 };
enum : int { kOptionId = 0, kOptionTos = 0, kOptionReuseAddress = 1, kOptionOneFamily = 2, kOptionAckTimeout = 3 };

}  // namespace nd::verbs
