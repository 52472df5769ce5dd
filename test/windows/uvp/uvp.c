/* The functions of the table, which check their arguments. */
#include <stddef.h>
#include <string.h>
#include "standin-uvp.h"

CRITICAL_SECTION standin_lock;
Qp *standin_qps;
Mw *standin_mws;

enum { SLOTS = sizeof(uvp_interface_t) / sizeof(void *) };
#define SLOT(name) (offsetof(uvp_interface_t, name) / sizeof(void *))

static u32 fails[SLOTS], calls[SLOTS], live;
static u8 lacks[SLOTS];
static const char *first_fault = "";

/* Exports for tests. */
__declspec(dllexport) void standin_fail(u32 slot, u32 status) { fails[slot] = status; }
__declspec(dllexport) void standin_lack(u32 slot, u32 lacking) { lacks[slot] = (u8)lacking; }
__declspec(dllexport) u32 standin_calls(u32 slot) { return calls[slot]; }
__declspec(dllexport) u32 standin_live(void) { return live; }
__declspec(dllexport) const char *standin_fault(void) {
  const char *text = first_fault;
  first_fault = "";
  return text;
}

int standin_expect(int holds, const char *text) {
  if (!holds && !*first_fault) first_fault = text;
  return holds;
}

void *standin_allocate(size_t bytes) {
  live++;
  return HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes);
}

void standin_release(void *memory) {
  if (!memory) return;
  live--;
  HeapFree(GetProcessHeap(), 0, memory);
}

int standin_ioctl(Ca *ca, u32 code, const void *in, u32 in_bytes, void *out, u32 out_bytes) {
  DWORD got;
  return DeviceIoControl(ca->file, code, (void *)in, in_bytes, out, out_bytes, &got, NULL);
}

/* Counts a call. Returns the status with which it must fail, if a test has set one. */
static u32 begin(u32 slot) {
  u32 status = fails[slot];
  calls[slot]++;
  fails[slot] = 0;
  return status;
}
#define BEGIN(name) \
  do { \
    u32 failure = begin(SLOT(name)); \
    if (failure) return failure; \
  } while (0)

static void *object(void *handle, u32 kind, const char *text) {
  Object *o = handle;
  return standin_expect(o != NULL && o->kind == kind, text) ? o : NULL;
}

static void *make(u32 kind, size_t bytes) {
  Object *o = standin_allocate(bytes);
  o->kind = kind;
  return o;
}

static void end(void *memory) {
  ((Object *)memory)->kind = 0;
  standin_release(memory);
}

/* Writes the provider's bytes for the driver. */
static void send_umv(ci_umv_buf_t *umv, u32 kind) {
  Exchange *exchange = standin_allocate(sizeof *exchange);
  static const ci_umv_buf_t empty;
  standin_expect(memcmp(umv, &empty, sizeof empty) == 0, "ci_umv_buf_t before the pre hook");
  exchange->in.magic = UVP_MAGIC;
  exchange->in.kind = kind;
  exchange->in.last = ~(u64)UVP_MAGIC;
  umv->command = UVP_MAGIC;
  umv->input_size = 16;
  umv->output_size = 24;
  umv->p_inout_buf = (u64)(ULONG_PTR)exchange;
}

/* Checks the driver's reply and sets the object's id. Returns its number, or 0. */
static u64 take_umv(ci_umv_buf_t *umv, u32 status, Object *o) {
  Exchange *exchange = (Exchange *)(ULONG_PTR)umv->p_inout_buf;
  u64 number = 0;
  if (!standin_expect(exchange != NULL, "p_inout_buf in the post hook")) return 0;
  standin_expect(umv->command == UVP_MAGIC && umv->input_size == 16 && umv->output_size == 24, "ci_umv_buf_t in the post hook");
  standin_expect(umv->status == (status ? 0 : 0x5a), "umv.status");
  if (!status) {
    standin_expect(exchange->out.magic == UVP_MAGIC && exchange->out.kind == o->kind, "the driver's reply");
    o->id = exchange->out.id;
    number = exchange->out.number;
  }
  standin_release(exchange);
  return number;
}

/* Device */
static ib_api_status_t __stdcall pre_open_ca(u64 guid, ci_umv_buf_t *umv, handle_t *made) {
  BEGIN(pre_open_ca);
  standin_expect(_byteswap_uint64(guid) == 0x0002c903000f1234ull, "CA GUID");
  standin_expect(*made == NULL, "handle before the pre hook");
  send_umv(umv, CA);
  return IB_SUCCESS;
}

static ib_api_status_t __stdcall post_open_ca(u64 guid, ib_api_status_t status, handle_t *made, ci_umv_buf_t *umv) {
  Ca *ca = make(CA, sizeof *ca);
  u32 failure = begin(SLOT(post_open_ca));
  (void)guid;
  take_umv(umv, status, &ca->o);
  if (status) {
    end(ca);
    return failure;
  }
  ca->file = CreateFileW(L"\\\\.\\WinVerbs", GENERIC_READ | GENERIC_WRITE, 3, NULL, OPEN_EXISTING, 0, NULL);
  standin_expect(ca->file != INVALID_HANDLE_VALUE, "the provider's own file");
  /* Like some providers, creates the handle in the post hook. */
  *made = ca;
  return failure;
}

static ib_api_status_t __stdcall pre_close_ca(handle_t handle) {
  object(handle, CA, "pre_close_ca");
  return begin(SLOT(pre_close_ca));
}

static ib_api_status_t __stdcall post_close_ca(handle_t handle, ib_api_status_t status) {
  Ca *ca = object(handle, CA, "post_close_ca");
  u32 failure = begin(SLOT(post_close_ca));
  if (!ca) return failure;
  CloseHandle(ca->file);
  if (!status) end(ca);
  return failure;
}

/* Protection domain */
static ib_api_status_t __stdcall pre_allocate_pd(handle_t ca, ci_umv_buf_t *umv, handle_t *made) {
  Pd *pd;
  BEGIN(pre_allocate_pd);
  pd = make(PD, sizeof *pd);
  pd->ca = object(ca, CA, "pre_allocate_pd");
  send_umv(umv, PD);
  *made = pd;
  return IB_SUCCESS;
}

static void __stdcall post_allocate_pd(handle_t ca, ib_api_status_t status, handle_t *made, ci_umv_buf_t *umv) {
  Pd *pd = object(*made, PD, "post_allocate_pd");
  begin(SLOT(post_allocate_pd));
  standin_expect(pd && pd->ca == ca, "device of post_allocate_pd");
  take_umv(umv, status, &pd->o);
  if (status) end(pd);
}

/* The hooks that destroy objects. */
#define PRE(hook, KIND) \
  static ib_api_status_t __stdcall hook(handle_t handle) { \
    object(handle, KIND, #hook); \
    return begin(SLOT(hook)); \
  }
#define POST(hook, KIND, cleanup) \
  static void __stdcall hook(handle_t handle, ib_api_status_t status) { \
    void *o = object(handle, KIND, #hook); \
    begin(SLOT(hook)); \
    if (status || !o) return; \
    EnterCriticalSection(&standin_lock); \
    cleanup; \
    LeaveCriticalSection(&standin_lock); \
    end(o); \
  }

PRE(pre_deallocate_pd, PD)
POST(post_deallocate_pd, PD, (void)0)

/* Address handles. They are created without an IOCTL unless the hop limit is 77. */
static ib_api_status_t __stdcall pre_create_av(handle_t pd, const ib_av_attr_t *attr, ci_umv_buf_t *umv, handle_t *made) {
  Av *av;
  BEGIN(pre_create_av);
  standin_expect(attr->port_num == 1 && attr->grh_valid == 1, "ib_av_attr_t");
  standin_expect(attr->grh.resv1 == attr->grh.resv2 && attr->grh.resv1 <= 1, "GID index of ib_av_attr_t");
  standin_expect(attr->sl == 0 && attr->dlid == 0 && attr->static_rate == 0 && attr->path_bits == 0, "other fields of ib_av_attr_t");
  standin_expect((_byteswap_ulong(attr->grh.ver_class_flow) & 0xfffff) == 0x12345 || !attr->grh.ver_class_flow, "flow label");
  av = make(AV, sizeof *av);
  av->pd = object(pd, PD, "pre_create_av");
  memcpy(av->destination, attr->grh.dest_gid, 16);
  *made = av;
  if (attr->grh.hop_limit != 77) return IB_VERBS_PROCESSING_DONE;
  send_umv(umv, AV);
  return IB_SUCCESS;
}

static void __stdcall post_create_av(handle_t pd, ib_api_status_t status, handle_t *made, ci_umv_buf_t *umv) {
  Av *av = object(*made, AV, "post_create_av");
  begin(SLOT(post_create_av));
  standin_expect(av && av->pd == pd, "domain of post_create_av");
  take_umv(umv, status, &av->o);
  if (status) end(av);
}

static ib_api_status_t __stdcall pre_destroy_av(handle_t handle) {
  Av *av = object(handle, AV, "pre_destroy_av");
  BEGIN(pre_destroy_av);
  if (!av || av->o.id) return IB_SUCCESS;
  end(av);
  return IB_VERBS_PROCESSING_DONE;
}
POST(post_destroy_av, AV, (void)0)

/* Completion queues */
static ib_api_status_t __stdcall pre_create_cq(handle_t ca, u32 *size, ci_umv_buf_t *umv, handle_t *made) {
  Cq *cq;
  BEGIN(pre_create_cq);
  cq = make(CQ, sizeof *cq);
  cq->ca = object(ca, CA, "pre_create_cq");
  /* Adds an entry, so that tests can detect whether the provider's or the requested size is used. */
  cq->size = ++*size;
  cq->ring = standin_allocate(cq->size * sizeof *cq->ring);
  send_umv(umv, CQ);
  *made = cq;
  return IB_SUCCESS;
}

static void __stdcall post_create_cq(handle_t ca, ib_api_status_t status, u32 size, handle_t *made, ci_umv_buf_t *umv) {
  Cq *cq = object(*made, CQ, "post_create_cq");
  begin(SLOT(post_create_cq));
  standin_expect(cq && cq->ca == ca && size == cq->size, "post_create_cq");
  take_umv(umv, status, &cq->o);
  if (!status) return;
  standin_release(cq->ring);
  end(cq);
}

static ib_api_status_t __stdcall pre_resize_cq(handle_t handle, u32 *size, ci_umv_buf_t *umv) {
  Cq *cq = object(handle, CQ, "pre_resize_cq");
  BEGIN(pre_resize_cq);
  cq->next_size = *size;
  send_umv(umv, CQ);
  return IB_SUCCESS;
}

static void __stdcall post_resize_cq(handle_t handle, ib_api_status_t status, u32 size, ci_umv_buf_t *umv) {
  Cq *cq = object(handle, CQ, "post_resize_cq");
  uvp_wc_t *ring;
  begin(SLOT(post_resize_cq));
  take_umv(umv, status, &cq->o);
  if (status) return;
  standin_expect(size == cq->next_size, "post_resize_cq");
  ring = standin_allocate(size * sizeof *ring);
  for (u32 i = 0; i < cq->count; i++) ring[i] = cq->ring[(cq->first + i) % cq->size];
  standin_release(cq->ring);
  cq->ring = ring;
  cq->size = size;
  cq->first = 0;
}

PRE(pre_destroy_cq, CQ)
POST(post_destroy_cq, CQ, standin_release(((Cq *)o)->ring))

/* Shared receive queues */
static ib_api_status_t __stdcall pre_create_srq(handle_t pd, const ib_srq_attr_t *attr, ci_umv_buf_t *umv, handle_t *made) {
  Srq *srq;
  BEGIN(pre_create_srq);
  srq = make(SRQ, sizeof *srq);
  srq->pd = object(pd, PD, "pre_create_srq");
  srq->attr = *attr;
  standin_expect(attr->max_wr > 0 && attr->max_sge > 0 && attr->srq_limit <= attr->max_wr, "ib_srq_attr_t");
  send_umv(umv, SRQ);
  *made = srq;
  return IB_SUCCESS;
}

static void __stdcall post_create_srq(handle_t pd, ib_api_status_t status, handle_t *made, ci_umv_buf_t *umv) {
  Srq *srq = object(*made, SRQ, "post_create_srq");
  begin(SLOT(post_create_srq));
  standin_expect(srq && srq->pd == pd, "domain of post_create_srq");
  take_umv(umv, status, &srq->o);
  if (status) end(srq);
}

static ib_api_status_t __stdcall pre_modify_srq(handle_t handle, const ib_srq_attr_t *attr, u32 mask, ci_umv_buf_t *umv) {
  Srq *srq = object(handle, SRQ, "pre_modify_srq");
  BEGIN(pre_modify_srq);
  standin_expect(mask == 3, "mask of pre_modify_srq");
  srq->next_attr = *attr;
  send_umv(umv, SRQ);
  return IB_SUCCESS;
}

static void __stdcall post_modify_srq(handle_t handle, ib_api_status_t status, ci_umv_buf_t *umv) {
  Srq *srq = object(handle, SRQ, "post_modify_srq");
  begin(SLOT(post_modify_srq));
  take_umv(umv, status, &srq->o);
  if (status) return;
  srq->attr.max_wr = srq->next_attr.max_wr;
  srq->attr.srq_limit = srq->next_attr.srq_limit;
}

static ib_api_status_t __stdcall pre_query_srq(handle_t handle, ci_umv_buf_t *umv) {
  object(handle, SRQ, "pre_query_srq");
  BEGIN(pre_query_srq);
  send_umv(umv, SRQ);
  return IB_SUCCESS;
}

static void __stdcall post_query_srq(handle_t handle, ib_api_status_t status, ib_srq_attr_t *attr, ci_umv_buf_t *umv) {
  Srq *srq = object(handle, SRQ, "post_query_srq");
  begin(SLOT(post_query_srq));
  take_umv(umv, status, &srq->o);
  if (!status) *attr = srq->attr;
}

PRE(pre_destroy_srq, SRQ)
POST(post_destroy_srq, SRQ, drop_receives(&((Srq *)o)->receives))

/* Queue pairs */
static ib_api_status_t __stdcall wv_pre_create_qp(handle_t pd, const uvp_qp_create_t *create, ci_umv_buf_t *umv, handle_t *made) {
  const ib_qp_create_t *qc = &create->qp_create;
  Qp *qp;
  BEGIN(wv_pre_create_qp);
  standin_expect(qc->qp_type == RC || qc->qp_type == UC || qc->qp_type == UD, "qp_type");
  standin_expect(qc->sq_signaled == 0 || qc->sq_signaled == 1, "sq_signaled");
  standin_expect(qc->sq_max_inline == create->max_inline_send, "both inline sizes");
  standin_expect(!qc->h_srq || (qc->rq_depth == 0 && qc->rq_sge == 0), "receive queue in addition to an SRQ");
  standin_expect(qc->qp_type == RC || create->initiator_depth + create->responder_resources == 0, "read depths");
  if (qc->sq_sge > MOST_SGES || qc->rq_sge > MOST_SGES) return IB_INVALID_MAX_SGE;
  if (qc->sq_max_inline > MOST_INLINE) return IB_INVALID_PARAMETER;
  qp = make(QP, sizeof *qp);
  qp->create = *create;
  qp->pd = object(pd, PD, "wv_pre_create_qp");
  qp->send_cq = object(qc->h_sq_cq_pointer, CQ, "h_sq_cq");
  qp->receive_cq = object(qc->h_rq_cq_pointer, CQ, "h_rq_cq");
  if (qc->h_srq) qp->srq = object(qc->h_srq_pointer, SRQ, "h_srq");
  send_umv(umv, QP);
  *made = qp;
  return IB_SUCCESS;
}

static ib_api_status_t __stdcall post_create_qp(handle_t pd, ib_api_status_t status, handle_t *made, ci_umv_buf_t *umv) {
  Qp *qp = object(*made, QP, "post_create_qp");
  u32 failure = begin(SLOT(post_create_qp));
  standin_expect(qp && qp->pd == pd, "domain of post_create_qp");
  qp->qpn = (u32)take_umv(umv, status, &qp->o);
  if (status) {
    end(qp);
    return failure;
  }
  EnterCriticalSection(&standin_lock);
  qp->next = standin_qps;
  standin_qps = qp;
  LeaveCriticalSection(&standin_lock);
  return failure;
}

static void unlink_qp(Qp *qp) {
  for (Qp **at = &standin_qps; *at; at = &(*at)->next)
    if (*at == qp) {
      *at = qp->next;
      break;
    }
  drop_sends(qp);
  drop_receives(&qp->receives);
  /* Like hardware, removes the completions of the queue pair. */
  for (int i = 0; i < 2; i++) {
    Cq *cq = i ? qp->receive_cq : qp->send_cq;
    u32 kept = 0;
    for (u32 k = 0; k < cq->count; k++) {
      uvp_wc_t wc = cq->ring[(cq->first + k) % cq->size];
      if (wc.qp_context != qp->create.context) cq->ring[(cq->first + kept++) % cq->size] = wc;
    }
    cq->count = kept;
  }
}

PRE(pre_destroy_qp, QP)
POST(post_destroy_qp, QP, unlink_qp(o))

static void __stdcall nd_modify_qp(handle_t handle, void **out, u32 *size) {
  Qp *qp = object(handle, QP, "nd_modify_qp");
  begin(SLOT(nd_modify_qp));
  *out = &qp->var;
  *size = sizeof qp->var;
}

static u32 __stdcall nd_get_qp_state(handle_t handle) {
  static const u32 states[] = {1, 2, 4, 8, 16, 0x80, 0x100};
  Qp *qp = object(handle, QP, "nd_get_qp_state");
  begin(SLOT(nd_get_qp_state));
  return states[qp->var.state];
}

/* Memory windows */
static ib_api_status_t __stdcall pre_create_mw(handle_t pd, ci_umv_buf_t *umv, handle_t *made) {
  Mw *mw;
  BEGIN(pre_create_mw);
  mw = make(MW, sizeof *mw);
  mw->pd = object(pd, PD, "pre_create_mw");
  send_umv(umv, MW);
  *made = mw;
  return IB_SUCCESS;
}

static void __stdcall post_create_mw(handle_t pd, ib_api_status_t status, u32 rkey, handle_t *made, ci_umv_buf_t *umv) {
  Mw *mw = object(*made, MW, "post_create_mw");
  begin(SLOT(post_create_mw));
  standin_expect(mw && mw->pd == pd, "domain of post_create_mw");
  take_umv(umv, status, &mw->o);
  if (status) {
    end(mw);
    return;
  }
  mw->rkey = _byteswap_ulong(rkey);
  standin_expect((mw->rkey & 0xff0000ff) == 0 && mw->rkey >= 0x300000, "rkey of post_create_mw");
  EnterCriticalSection(&standin_lock);
  mw->next = standin_mws;
  standin_mws = mw;
  LeaveCriticalSection(&standin_lock);
}

static void unlink_mw(Mw *mw) {
  for (Mw **at = &standin_mws; *at; at = &(*at)->next)
    if (*at == mw) {
      *at = mw->next;
      return;
    }
}

PRE(pre_destroy_mw, MW)
POST(post_destroy_mw, MW, unlink_mw(o))

static ib_api_status_t __stdcall bind_mw(handle_t window, handle_t queue_pair, ib_bind_wr_t *wr, u32 *rkey) {
  Mw *mw = object(window, MW, "window of bind_mw");
  Qp *qp = object(queue_pair, QP, "queue pair of bind_mw");
  const ib_local_ds_t *ds = &wr->local_ds;
  u32 status = WCS_SUCCESS;
  BEGIN(bind_mw);
  standin_expect(_byteswap_ulong(wr->current_rkey) == mw->rkey, "current_rkey");
  standin_expect((wr->access_ctrl & ~0x1fu) == 0 && wr->h_mr == 0, "ib_bind_wr_t");
  EnterCriticalSection(&standin_lock);
  run_hca();
  if (qp->var.state != RTS) {
    LeaveCriticalSection(&standin_lock);
    return IB_INVALID_QP_STATE;
  }
  mw->rkey = (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
  if (ds->length && !local_access(qp, ds->lkey, ds->vaddr, ds->length, AC_BIND)) status = WCS_BIND;
  mw->access = ds->length ? wr->access_ctrl : 0;
  mw->start = ds->vaddr;
  mw->length = status ? 0 : ds->length;
  if (!ds->length) mw->access = 0;
  *rkey = _byteswap_ulong(mw->rkey);
  complete_send(qp, wr->wr_id, wr->send_opt, WC_MW_BIND, status, 0);
  LeaveCriticalSection(&standin_lock);
  return IB_SUCCESS;
}

/* Requests */
static ib_api_status_t check_send(Qp *qp, const ib_send_wr_t *wr) {
  u32 inline_bytes = 0;
  if (qp->var.state < RTS) return IB_INVALID_QP_STATE;
  if (wr->wr_type > WR_FETCH_ADD) return IB_INVALID_WR_TYPE;
  if (wr->num_ds > qp->create.qp_create.sq_sge) return IB_INVALID_MAX_SGE;
  if (qp->sends >= qp->create.qp_create.sq_depth) return IB_INSUFFICIENT_RESOURCES;
  standin_expect((wr->send_opt & ~0x1fu) == 0, "send_opt");
  if (!(wr->send_opt & INLINE)) return IB_SUCCESS;
  for (u32 i = 0; i < wr->num_ds; i++) inline_bytes += wr->ds_array[i].length;
  return inline_bytes > qp->create.max_inline_send ? IB_INVALID_PARAMETER : IB_SUCCESS;
}

static Send *copy_send(Qp *qp, const ib_send_wr_t *wr) {
  Send *send = standin_allocate(sizeof *send);
  u8 *to = send->bytes;
  send->wr = *wr;
  if (qp->create.qp_create.qp_type == UD) object(wr->wr.ud.h_av, AV, "h_av");
  if (!(wr->send_opt & INLINE)) {
    memcpy(send->sges, wr->ds_array, wr->num_ds * sizeof *send->sges);
    return send;
  }
  /* From here on, `num_ds` is the number of bytes. */
  for (u32 i = 0; i < wr->num_ds; to += wr->ds_array[i++].length)
    memcpy(to, (void *)(ULONG_PTR)wr->ds_array[i].vaddr, wr->ds_array[i].length);
  send->wr.num_ds = (u32)(to - send->bytes);
  return send;
}

static ib_api_status_t __stdcall post_send(handle_t handle, ib_send_wr_t *wr, ib_send_wr_t **failed) {
  Qp *qp = object(handle, QP, "post_send");
  u32 status = IB_SUCCESS;
  BEGIN(post_send);
  EnterCriticalSection(&standin_lock);
  run_hca();
  for (; wr; wr = wr->p_next) {
    Send *send;
    status = check_send(qp, wr);
    if (status) {
      *failed = wr;
      break;
    }
    send = copy_send(qp, wr);
    if (!qp->first_send) qp->last_send = &qp->first_send;
    *qp->last_send = send;
    qp->last_send = &send->next;
    qp->sends++;
  }
  run_hca();
  LeaveCriticalSection(&standin_lock);
  return status;
}

static ib_api_status_t queue_receives(Receives *queue, u32 depth, u32 sges, ib_recv_wr_t *wr, ib_recv_wr_t **failed) {
  for (; wr; wr = wr->p_next_pointer) {
    Receive *receive;
    u32 status = queue->count >= depth ? IB_INSUFFICIENT_RESOURCES : wr->num_ds > sges ? IB_INVALID_MAX_SGE : IB_SUCCESS;
    if (status) {
      *failed = wr;
      return status;
    }
    receive = standin_allocate(sizeof *receive);
    receive->wr_id = wr->wr_id;
    receive->count = wr->num_ds;
    memcpy(receive->sges, wr->ds_array_pointer, wr->num_ds * sizeof *receive->sges);
    add_receive(queue, receive);
  }
  return IB_SUCCESS;
}

static ib_api_status_t __stdcall post_recv(handle_t handle, ib_recv_wr_t *wr, ib_recv_wr_t **failed) {
  Qp *qp = object(handle, QP, "post_recv");
  u32 status;
  BEGIN(post_recv);
  standin_expect(!qp->srq, "post_recv in addition to an SRQ");
  if (qp->var.state < INIT) return IB_INVALID_QP_STATE;
  EnterCriticalSection(&standin_lock);
  status = queue_receives(&qp->receives, qp->create.qp_create.rq_depth, qp->create.qp_create.rq_sge, wr, failed);
  run_hca();
  LeaveCriticalSection(&standin_lock);
  return status;
}

static ib_api_status_t __stdcall post_srq_recv(handle_t handle, ib_recv_wr_t *wr, ib_recv_wr_t **failed) {
  Srq *srq = object(handle, SRQ, "post_srq_recv");
  u32 status;
  BEGIN(post_srq_recv);
  EnterCriticalSection(&standin_lock);
  status = queue_receives(&srq->receives, srq->attr.max_wr, srq->attr.max_sge, wr, failed);
  run_hca();
  LeaveCriticalSection(&standin_lock);
  return status;
}

static ib_api_status_t __stdcall peek_cq(handle_t handle, u32 *count) {
  Cq *cq = object(handle, CQ, "peek_cq");
  BEGIN(peek_cq);
  EnterCriticalSection(&standin_lock);
  run_hca();
  *count = cq->count;
  LeaveCriticalSection(&standin_lock);
  return IB_SUCCESS;
}

static int __stdcall poll_cq_array(handle_t handle, int count, uvp_wc_t *wcs) {
  Cq *cq = object(handle, CQ, "poll_cq_array");
  int taken = 0;
  u32 failure = begin(SLOT(poll_cq_array));
  if (failure) return -(int)failure;
  standin_expect(count > 0, "number of completions to poll");
  EnterCriticalSection(&standin_lock);
  run_hca();
  for (; taken < count && cq->count; taken++, cq->count--) {
    wcs[taken] = cq->ring[cq->first];
    cq->first = (cq->first + 1) % cq->size;
  }
  LeaveCriticalSection(&standin_lock);
  return taken == 0 && cq->overrun ? -2 : taken;
}

static ib_api_status_t __stdcall rearm_cq(handle_t handle, int solicited) {
  Cq *cq = object(handle, CQ, "rearm_cq");
  BEGIN(rearm_cq);
  standin_expect(solicited == 0 || solicited == 1, "solicited");
  EnterCriticalSection(&standin_lock);
  run_hca();
  arm_cq(cq, 1, solicited);
  LeaveCriticalSection(&standin_lock);
  return IB_SUCCESS;
}

static ib_api_status_t __stdcall rearm_n_cq(handle_t handle, u32 count) {
  Cq *cq = object(handle, CQ, "rearm_n_cq");
  BEGIN(rearm_n_cq);
  if (count == 0 || count > cq->size) return IB_INVALID_PARAMETER;
  EnterCriticalSection(&standin_lock);
  run_hca();
  arm_cq(cq, count, 0);
  LeaveCriticalSection(&standin_lock);
  return IB_SUCCESS;
}

static const uvp_interface_t table = {
    .pre_open_ca = pre_open_ca, .post_open_ca = post_open_ca, .pre_close_ca = pre_close_ca, .post_close_ca = post_close_ca,
    .pre_allocate_pd = pre_allocate_pd, .post_allocate_pd = post_allocate_pd, .pre_deallocate_pd = pre_deallocate_pd,
    .post_deallocate_pd = post_deallocate_pd, .pre_create_av = pre_create_av, .post_create_av = post_create_av,
    .pre_destroy_av = pre_destroy_av, .post_destroy_av = post_destroy_av, .pre_create_srq = pre_create_srq,
    .post_create_srq = post_create_srq, .pre_modify_srq = pre_modify_srq, .post_modify_srq = post_modify_srq,
    .pre_query_srq = pre_query_srq, .post_query_srq = post_query_srq, .pre_destroy_srq = pre_destroy_srq,
    .post_destroy_srq = post_destroy_srq, .post_create_qp = post_create_qp, .pre_destroy_qp = pre_destroy_qp,
    .post_destroy_qp = post_destroy_qp, .pre_create_cq = pre_create_cq, .post_create_cq = post_create_cq,
    .pre_resize_cq = pre_resize_cq, .post_resize_cq = post_resize_cq, .pre_destroy_cq = pre_destroy_cq,
    .post_destroy_cq = post_destroy_cq, .pre_create_mw = pre_create_mw, .post_create_mw = post_create_mw,
    .pre_destroy_mw = pre_destroy_mw, .post_destroy_mw = post_destroy_mw, .bind_mw = bind_mw, .post_send = post_send,
    .post_recv = post_recv, .post_srq_recv = post_srq_recv, .peek_cq = peek_cq, .rearm_cq = rearm_cq, .rearm_n_cq = rearm_n_cq,
    .nd_modify_qp = nd_modify_qp, .nd_get_qp_state = nd_get_qp_state, .wv_pre_create_qp = wv_pre_create_qp,
    .poll_cq_array = poll_cq_array};

__declspec(dllexport) ib_api_status_t uvp_get_interface(GUID iid, void *ifc) {
  static const GUID uvp = {0xa1f1ea66, 0x4d17, 0x4d04, {0xb9, 0x10, 0x89, 0x3f, 0x65, 0x82, 0x41, 0xd0}};
  if (memcmp(&iid, &uvp, sizeof uvp) != 0) return IB_UNSUPPORTED;
  memcpy(ifc, &table, sizeof table);
  for (u32 i = 0; i < SLOTS; i++)
    if (lacks[i]) ((void **)ifc)[i] = NULL;
  return IB_SUCCESS;
}

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved) {
  (void)module;
  (void)reserved;
  if (reason == DLL_PROCESS_ATTACH) InitializeCriticalSection(&standin_lock);
  return TRUE;
}
