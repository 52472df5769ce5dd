/* Common declarations of the stand-in for a vendor's user-mode verbs provider and its HCA. Calls that post and poll
 * execute the HCA's work, the transfer of data between two queue pairs. */
#ifndef STANDIN_UVP_H
#define STANDIN_UVP_H
#include <windows.h>
#include "uvp-types.h"

enum {
  IB_SUCCESS = 0,
  IB_INSUFFICIENT_RESOURCES = 1,
  IB_INSUFFICIENT_MEMORY = 2,
  IB_INVALID_PARAMETER = 3,
  IB_UNSUPPORTED = 10,
  IB_INVALID_QP_STATE = 13,
  IB_INVALID_MAX_SGE = 22,
  IB_VERBS_PROCESSING_DONE = 45,
  IB_INVALID_WR_TYPE = 46
};
enum { WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ, WR_COMPARE_SWAP, WR_FETCH_ADD };
enum { WC_MW_BIND = 5, WC_RECV = 128, WC_RECV_RDMA_WRITE = 129 };
enum { IMMEDIATE = 1, FENCE = 2, SIGNALED = 4, SOLICITED = 8, INLINE = 16 };
enum {
  WCS_SUCCESS,
  WCS_LOCAL_LENGTH,
  WCS_LOCAL_OP,
  WCS_LOCAL_PROTECTION,
  WCS_FLUSHED,
  WCS_BIND,
  WCS_REMOTE_ACCESS,
  WCS_REMOTE_OP,
  WCS_REMOTE_INVALID = 10
};
enum { AC_READ = 1, AC_WRITE = 2, AC_ATOMIC = 4, AC_LOCAL_WRITE = 8, AC_BIND = 16 };
enum { RC = 0, UC = 1, UD = 3 };
/* States, as numbered by the driver. */
enum { RESET, INIT, RTR, RTS, SQD, SQERROR, ERRORED };
enum { MOST_SGES = 16, MOST_INLINE = 256 };
/* Kinds of objects, as numbered by the driver. */
enum { CA = 1, PD = 2, MW = 4, AV = 5, CQ = 6, SRQ = 7, QP = 8 };

#define UVP_MAGIC 0x75767031u

/* The bytes that a request to create an object exchanges with the driver. */
typedef union {
  struct {
    u32 magic, kind;
    u64 last;
  } in;
  struct {
    u32 magic, kind;
    u64 id, number;
  } out;
} Exchange;

typedef struct Object {
  u32 kind;
  u64 id;
} Object;

typedef struct {
  Object o;
  HANDLE file;
} Ca;

typedef struct {
  Object o;
  Ca* ca;
} Pd;

typedef struct {
  Object o;
  Pd* pd;
  u8 destination[16];
} Av;

typedef struct Cq {
  Object o;
  Ca* ca;
  u32 size, next_size, first, count;
  uvp_wc_t* ring;
  /* Number of completions that cause an event; 0: not armed. */
  u32 armed;
  int solicited_only, overrun;
} Cq;

typedef struct Receive {
  struct Receive* next;
  u64 wr_id;
  u32 count;
  ib_local_ds_t sges[MOST_SGES];
} Receive;

/* Receives in order. */
typedef struct {
  Receive *first, **last;
  u32 count;
} Receives;

typedef struct Srq {
  Object o;
  Pd* pd;
  ib_srq_attr_t attr, next_attr;
  Receives receives;
} Srq;

typedef struct Send {
  struct Send* next;
  ib_send_wr_t wr;
  ib_local_ds_t sges[MOST_SGES];
  u8 bytes[MOST_INLINE];
} Send;

typedef struct Qp {
  Object o;
  struct Qp* next;
  /* The state variable, whose address nd_modify_qp returns. `other` is the peer's QPN, or the Q_Key (UD). */
  struct {
    u32 state, other;
  } var;
  u32 qpn;
  uvp_qp_create_t create;
  Pd* pd;
  Cq *send_cq, *receive_cq;
  Srq* srq;
  Send *first_send, **last_send;
  u32 sends;
  Receives receives;
} Qp;

typedef struct Mw {
  Object o;
  struct Mw* next;
  Pd* pd;
  u32 rkey, access;
  u64 start, length;
} Mw;

extern CRITICAL_SECTION standin_lock;
extern Qp* standin_qps;
extern Mw* standin_mws;

/* Records a fault with this text unless `holds`. Returns `holds`. */
int standin_expect(int holds, const char* text);
void* standin_allocate(size_t bytes);
void standin_release(void* memory);
/* Sends one of the driver's IOCTLs for the stand-in provider. */
int standin_ioctl(Ca* ca, u32 code, const void* in, u32 in_bytes, void* out, u32 out_bytes);

/* Executes requests until none can be executed. */
void run_hca(void);
void add_receive(Receives* queue, Receive* receive);
void drop_receives(Receives* queue);
void drop_sends(Qp* qp);
void complete_send(Qp* qp, u64 wr_id, u32 opt, u32 type, u32 status, u32 length);
void arm_cq(Cq* cq, u32 count, int solicited_only);
/* Whether the registration with a local key contains these bytes and has these rights. */
int local_access(Qp* qp, u32 lkey, u64 start, u64 length, u32 access);

#endif
