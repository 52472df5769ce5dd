// libibverbs and librdmacm, loaded when the first device is opened.
#pragma once
#include <sys/types.h>

#include <string>

#include "verbs/rdma_core.h"

namespace nd::verbs {

// Name, result and parameters of each function. The default versions of the symbols match the structures in
// rdma_core.h.
#define ND_VERBS_SYMBOLS(X)                                                                  \
  X(ibv_get_device_list, ibv_device**, (int*))                                               \
  X(ibv_free_device_list, void, (ibv_device**))                                              \
  X(ibv_open_device, ibv_context*, (ibv_device*))                                            \
  X(ibv_close_device, int, (ibv_context*))                                                   \
  X(ibv_query_device, int, (ibv_context*, ibv_device_attr*))                                 \
  X(ibv_query_port, int, (ibv_context*, uint8_t, ibv_port_attr*))                            \
  X(ibv_query_pkey, int, (ibv_context*, uint8_t, int, uint16_t*))                            \
  X(_ibv_query_gid_table, ssize_t, (ibv_context*, ibv_gid_entry*, size_t, uint32_t, size_t)) \
  X(ibv_alloc_pd, ibv_pd*, (ibv_context*))                                                   \
  X(ibv_dealloc_pd, int, (ibv_pd*))                                                          \
  X(ibv_reg_mr, ibv_mr*, (ibv_pd*, void*, size_t, int))                                      \
  X(ibv_dereg_mr, int, (ibv_mr*))                                                            \
  X(ibv_create_comp_channel, ibv_comp_channel*, (ibv_context*))                              \
  X(ibv_destroy_comp_channel, int, (ibv_comp_channel*))                                      \
  X(ibv_create_cq, ibv_cq*, (ibv_context*, int, void*, ibv_comp_channel*, int))              \
  X(ibv_resize_cq, int, (ibv_cq*, int))                                                      \
  X(ibv_destroy_cq, int, (ibv_cq*))                                                          \
  X(ibv_get_cq_event, int, (ibv_comp_channel*, ibv_cq**, void**))                            \
  X(ibv_ack_cq_events, void, (ibv_cq*, unsigned))                                            \
  X(ibv_create_srq, ibv_srq*, (ibv_pd*, ibv_srq_init_attr*))                                 \
  X(ibv_modify_srq, int, (ibv_srq*, ibv_srq_attr*, int))                                     \
  X(ibv_query_srq, int, (ibv_srq*, ibv_srq_attr*))                                           \
  X(ibv_destroy_srq, int, (ibv_srq*))                                                        \
  X(ibv_create_qp, ibv_qp*, (ibv_pd*, ibv_qp_init_attr*))                                    \
  X(ibv_modify_qp, int, (ibv_qp*, ibv_qp_attr*, int))                                        \
  X(ibv_destroy_qp, int, (ibv_qp*))                                                          \
  X(ibv_create_ah, ibv_ah*, (ibv_pd*, ibv_ah_attr*))                                         \
  X(ibv_destroy_ah, int, (ibv_ah*))                                                          \
  X(ibv_attach_mcast, int, (ibv_qp*, const void*, uint16_t))                                 \
  X(ibv_detach_mcast, int, (ibv_qp*, const void*, uint16_t))                                 \
  X(ibv_get_async_event, int, (ibv_context*, ibv_async_event*))                              \
  X(ibv_ack_async_event, void, (ibv_async_event*))

#define ND_RDMACM_SYMBOLS(X)                                              \
  X(rdma_create_event_channel, rdma_event_channel*, (void))               \
  X(rdma_destroy_event_channel, void, (rdma_event_channel*))              \
  X(rdma_create_id, int, (rdma_event_channel*, rdma_cm_id**, void*, int)) \
  X(rdma_destroy_id, int, (rdma_cm_id*))                                  \
  X(rdma_bind_addr, int, (rdma_cm_id*, sockaddr*))                        \
  X(rdma_resolve_addr, int, (rdma_cm_id*, sockaddr*, sockaddr*, int))     \
  X(rdma_resolve_route, int, (rdma_cm_id*, int))                          \
  X(rdma_connect, int, (rdma_cm_id*, rdma_conn_param*))                   \
  X(rdma_establish, int, (rdma_cm_id*))                                   \
  X(rdma_listen, int, (rdma_cm_id*, int))                                 \
  X(rdma_accept, int, (rdma_cm_id*, rdma_conn_param*))                    \
  X(rdma_reject, int, (rdma_cm_id*, const void*, uint8_t))                \
  X(rdma_notify, int, (rdma_cm_id*, int))                                 \
  X(rdma_disconnect, int, (rdma_cm_id*))                                  \
  X(rdma_get_cm_event, int, (rdma_event_channel*, rdma_cm_event**))       \
  X(rdma_ack_cm_event, int, (rdma_cm_event*))                             \
  X(rdma_init_qp_attr, int, (rdma_cm_id*, ibv_qp_attr*, int*))            \
  X(rdma_set_option, int, (rdma_cm_id*, int, int, void*, size_t))         \
  X(rdma_join_multicast, int, (rdma_cm_id*, sockaddr*, void*))

struct Library {
#define ND_POINTER(name, result, parameters) result(*name) parameters = nullptr;
  ND_VERBS_SYMBOLS(ND_POINTER)
  ND_RDMACM_SYMBOLS(ND_POINTER)
#undef ND_POINTER
};

// Returns the libraries of this process. If it returns null, `why` names the missing library or function.
// NETWORKDIRECT_IBVERBS and NETWORKDIRECT_RDMACM select other files, for tests.
const Library* library(std::string* why);

}  // namespace nd::verbs
