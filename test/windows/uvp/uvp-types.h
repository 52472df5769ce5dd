/* The types that WinVerbs and a user-mode verbs provider exchange, defined independently of the library. Its layouts
 * are compared with these (layouts.ts), and the stand-in provider is compiled with them. */
#ifndef UVP_TYPES_H
#define UVP_TYPES_H
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

/* A pointer that occupies 8 bytes in 32-bit code, too. `name` is all 8 bytes. */
#define LONG_POINTER(name) \
  union {                  \
    u64 name;              \
    void* name##_pointer;  \
  }

typedef struct {
  u32 command, status, input_size, output_size;
  u64 p_inout_buf;
} ci_umv_buf_t;

typedef struct {
  u64 vaddr;
  u32 length, lkey;
} ib_local_ds_t;

typedef struct ib_send_wr {
  u64 wr_id;
  struct ib_send_wr* p_next;
  ib_local_ds_t* ds_array;
  u32 num_ds, wr_type, send_opt, immediate_data;
  union {
    struct {
      u64 vaddr;
      u32 rkey;
      u64 atomic1, atomic2;
    } remote_ops;
    struct {
      void* h_av;
      u32 remote_qp, remote_qkey;
      void* rsvd;
      u16 pkey_index;
      void* header;
      int hlen, mss;
    } ud;
    struct {
      u64 iova_start;
      void* page_list;
      u32 page_shift, page_list_len, length, access_flags, rkey, fbo;
    } fast_reg;
  } wr;
} ib_send_wr_t;

typedef struct ib_recv_wr {
  LONG_POINTER(p_next);
  u64 wr_id;
  u32 num_ds;
  LONG_POINTER(ds_array);
} ib_recv_wr_t;

typedef struct {
  u64 wr_id;
  u32 send_opt;
  LONG_POINTER(h_mr);
  u32 access_ctrl, current_rkey;
  ib_local_ds_t local_ds;
} ib_bind_wr_t;

typedef struct {
  void* qp_context;
  u64 wr_id;
  u32 wc_type, length;
  u64 vendor_specific;
  u32 status, recv_opt, immediate_data, remote_qp;
  u16 pkey_index, remote_lid;
  u8 remote_sl, path_bits;
} uvp_wc_t;

#pragma pack(push, 1)
typedef struct {
  u32 ver_class_flow;
  u16 resv1;
  u8 resv2, hop_limit, src_gid[16], dest_gid[16];
} ib_grh_t;
#pragma pack(pop)

typedef struct {
  u8 port_num, sl;
  u16 dlid;
  int grh_valid;
  ib_grh_t grh;
  u8 static_rate, path_bits;
  struct {
    u8 path_mtu, local_ack_timeout, seq_err_retry_cnt, rnr_retry_cnt;
  } conn;
} ib_av_attr_t;

typedef struct {
  u32 max_wr, max_sge, srq_limit;
} ib_srq_attr_t;

typedef struct {
  u32 qp_type, sq_max_inline, sq_depth, rq_depth, sq_sge, rq_sge;
  LONG_POINTER(h_sq_cq);
  LONG_POINTER(h_rq_cq);
  LONG_POINTER(h_srq);
  int sq_signaled;
} ib_qp_create_t;

typedef struct {
  ib_qp_create_t qp_create;
  void* context;
  u32 max_inline_send, initiator_depth, responder_resources;
} uvp_qp_create_t;

typedef u32 ib_api_status_t;
typedef void* handle_t;

/* Functions that WinVerbs does not use. */
typedef void(__stdcall* unused_t)(void);
typedef ib_api_status_t(__stdcall* of_handle_t)(handle_t);
typedef void(__stdcall* ended_t)(handle_t, ib_api_status_t);
typedef void(__stdcall* made_t)(handle_t, ib_api_status_t, handle_t*, ci_umv_buf_t*);

typedef struct {
  ib_api_status_t(__stdcall* pre_open_ca)(u64, ci_umv_buf_t*, handle_t*);
  ib_api_status_t(__stdcall* post_open_ca)(u64, ib_api_status_t, handle_t*, ci_umv_buf_t*);
  unused_t pre_query_ca, post_query_ca, pre_modify_ca, post_modify_ca;
  of_handle_t pre_close_ca;
  ib_api_status_t(__stdcall* post_close_ca)(handle_t, ib_api_status_t);
  unused_t pre_ci_call, post_ci_call;
  ib_api_status_t(__stdcall* pre_allocate_pd)(handle_t, ci_umv_buf_t*, handle_t*);
  made_t post_allocate_pd;
  of_handle_t pre_deallocate_pd;
  ended_t post_deallocate_pd;
  ib_api_status_t(__stdcall* pre_create_av)(handle_t, const ib_av_attr_t*, ci_umv_buf_t*, handle_t*);
  made_t post_create_av;
  unused_t pre_query_av, post_query_av, pre_modify_av, post_modify_av;
  of_handle_t pre_destroy_av;
  ended_t post_destroy_av;
  ib_api_status_t(__stdcall* pre_create_srq)(handle_t, const ib_srq_attr_t*, ci_umv_buf_t*, handle_t*);
  made_t post_create_srq;
  ib_api_status_t(__stdcall* pre_modify_srq)(handle_t, const ib_srq_attr_t*, u32, ci_umv_buf_t*);
  void(__stdcall* post_modify_srq)(handle_t, ib_api_status_t, ci_umv_buf_t*);
  ib_api_status_t(__stdcall* pre_query_srq)(handle_t, ci_umv_buf_t*);
  void(__stdcall* post_query_srq)(handle_t, ib_api_status_t, ib_srq_attr_t*, ci_umv_buf_t*);
  of_handle_t pre_destroy_srq;
  ended_t post_destroy_srq;
  unused_t pre_create_qp;
  ib_api_status_t(__stdcall* post_create_qp)(handle_t, ib_api_status_t, handle_t*, ci_umv_buf_t*);
  unused_t pre_modify_qp, post_modify_qp, pre_query_qp, post_query_qp;
  of_handle_t pre_destroy_qp;
  ended_t post_destroy_qp;
  ib_api_status_t(__stdcall* pre_create_cq)(handle_t, u32*, ci_umv_buf_t*, handle_t*);
  void(__stdcall* post_create_cq)(handle_t, ib_api_status_t, u32, handle_t*, ci_umv_buf_t*);
  unused_t pre_query_cq, post_query_cq;
  ib_api_status_t(__stdcall* pre_resize_cq)(handle_t, u32*, ci_umv_buf_t*);
  void(__stdcall* post_resize_cq)(handle_t, ib_api_status_t, u32, ci_umv_buf_t*);
  of_handle_t pre_destroy_cq;
  ended_t post_destroy_cq;
  ib_api_status_t(__stdcall* pre_create_mw)(handle_t, ci_umv_buf_t*, handle_t*);
  void(__stdcall* post_create_mw)(handle_t, ib_api_status_t, u32, handle_t*, ci_umv_buf_t*);
  unused_t pre_query_mw, post_query_mw;
  of_handle_t pre_destroy_mw;
  ended_t post_destroy_mw;
  ib_api_status_t(__stdcall* bind_mw)(handle_t, handle_t, ib_bind_wr_t*, u32*);
  ib_api_status_t(__stdcall* post_send)(handle_t, ib_send_wr_t*, ib_send_wr_t**);
  ib_api_status_t(__stdcall* post_recv)(handle_t, ib_recv_wr_t*, ib_recv_wr_t**);
  ib_api_status_t(__stdcall* post_srq_recv)(handle_t, ib_recv_wr_t*, ib_recv_wr_t**);
  ib_api_status_t(__stdcall* peek_cq)(handle_t, u32*);
  unused_t poll_cq;
  ib_api_status_t(__stdcall* rearm_cq)(handle_t, int);
  ib_api_status_t(__stdcall* rearm_n_cq)(handle_t, u32);
  unused_t pre_attach_mcast, post_attach_mcast, pre_detach_mcast, post_detach_mcast;
  void(__stdcall* nd_modify_qp)(handle_t, void**, u32*);
  u32(__stdcall* nd_get_qp_state)(handle_t);
  ib_api_status_t(__stdcall* wv_pre_create_qp)(handle_t, const uvp_qp_create_t*, ci_umv_buf_t*, handle_t*);
  int(__stdcall* poll_cq_array)(handle_t, int, uvp_wc_t*);
} uvp_interface_t;

#endif
