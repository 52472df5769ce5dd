/* The HCA: executes requests, checks keys, copies data, and completes and flushes requests. */
#include <stddef.h>
#include <string.h>
#include "standin-uvp.h"

#define TEST(i) ((0x22u << 16) | ((0xa00 + (i)) << 2))
enum { GRH = 40 };

void add_receive(Receives *queue, Receive *receive) {
  if (!queue->first) queue->last = &queue->first;
  receive->next = NULL;
  *queue->last = receive;
  queue->last = &receive->next;
  queue->count++;
}

static Receive *take_receive(Qp *qp) {
  Receives *queue = qp->srq ? &qp->srq->receives : &qp->receives;
  Receive *receive = queue->first;
  if (!receive) return NULL;
  queue->first = receive->next;
  queue->count--;
  return receive;
}

void drop_receives(Receives *queue) {
  while (queue->first) {
    Receive *receive = queue->first;
    queue->first = receive->next;
    standin_release(receive);
  }
  queue->count = 0;
}

void drop_sends(Qp *qp) {
  while (qp->first_send) {
    Send *send = qp->first_send;
    qp->first_send = send->next;
    standin_release(send);
  }
  qp->sends = 0;
}

static void fire(Cq *cq) {
  u64 id = cq->o.id;
  cq->armed = 0;
  standin_expect(standin_ioctl(cq->ca, TEST(10), &id, 8, NULL, 0), "event of a CQ");
}

void arm_cq(Cq *cq, u32 count, int solicited_only) {
  cq->armed = count;
  cq->solicited_only = solicited_only;
  /* Like hardware, this includes completions since the last poll. */
  if (cq->count >= count && !solicited_only) fire(cq);
}

static void push(Cq *cq, const uvp_wc_t *wc, int solicited) {
  if (cq->count == cq->size) {
    cq->overrun = 1;
    return;
  }
  cq->ring[(cq->first + cq->count++) % cq->size] = *wc;
  if (cq->armed && (cq->solicited_only ? solicited || wc->status : cq->count >= cq->armed)) fire(cq);
}

/* Fields that hardware does not write keep their old contents, which are not 0. */
static uvp_wc_t blank(Qp *qp, u64 wr_id, u32 type, u32 status) {
  uvp_wc_t wc;
  memset(&wc, 0xcc, sizeof wc);
  wc.qp_context = qp->create.context;
  wc.wr_id = wr_id;
  wc.wc_type = type;
  wc.status = status;
  wc.recv_opt = 0;
  if (status) wc.vendor_specific = 0x700 + status;
  return wc;
}

void complete_send(Qp *qp, u64 wr_id, u32 opt, u32 type, u32 status, u32 length) {
  uvp_wc_t wc = blank(qp, wr_id, type, status);
  if (type == WR_RDMA_READ) wc.length = length;
  if (status || qp->create.qp_create.sq_signaled || (opt & SIGNALED)) push(qp->send_cq, &wc, 0);
}

static void complete_receive(Qp *qp, Receive *receive, uvp_wc_t wc, int solicited) {
  wc.wr_id = receive->wr_id;
  push(qp->receive_cq, &wc, solicited);
  standin_release(receive);
}

typedef struct {
  u64 address, length;
  u32 access, pd;
} Region;

static int region_of(Ca *ca, u32 key, u32 remote, Region *region) {
  u32 in[2] = {key, remote};
  return standin_ioctl(ca, TEST(9), in, sizeof in, region, 24);
}

static int inside(u64 start, u64 length, u64 from, u64 bytes) { return from >= start && bytes <= length && from - start <= length - bytes; }

int local_access(Qp *qp, u32 lkey, u64 start, u64 length, u32 access) {
  Region region;
  return region_of(qp->pd->ca, lkey, 0, &region) && region.pd == qp->pd->o.id && inside(region.address, region.length, start, length) &&
         (region.access & access) == access;
}

static int remote_access(Qp *qp, u32 rkey, u64 start, u64 length, u32 access) {
  Region region;
  for (Mw *mw = standin_mws; mw; mw = mw->next)
    if (mw->rkey == rkey)
      return mw->pd->o.id == qp->pd->o.id && inside(mw->start, mw->length, start, length) && (mw->access & access) == access;
  return region_of(qp->pd->ca, rkey, 1, &region) && region.pd == qp->pd->o.id && inside(region.address, region.length, start, length) &&
         (region.access & access) == access;
}

static u64 total(const ib_local_ds_t *sges, u32 count) {
  u64 bytes = 0;
  for (u32 i = 0; i < count; i++) bytes += sges[i].length;
  return bytes;
}

static int may(Qp *qp, const ib_local_ds_t *sges, u32 count, u32 access) {
  for (u32 i = 0; i < count; i++)
    if (sges[i].length && !local_access(qp, sges[i].lkey, sges[i].vaddr, sges[i].length, access)) return 0;
  return 1;
}

/* Copies the bytes of a list to a buffer. */
static void gather(u8 *to, const ib_local_ds_t *sges, u32 count) {
  for (u32 i = 0; i < count; to += sges[i++].length) memcpy(to, (void *)(ULONG_PTR)sges[i].vaddr, sges[i].length);
}

static void scatter(const ib_local_ds_t *sges, u32 count, const u8 *from, u64 bytes) {
  for (u32 i = 0; i < count && bytes; i++) {
    u64 part = sges[i].length < bytes ? sges[i].length : bytes;
    memcpy((void *)(ULONG_PTR)sges[i].vaddr, from, part);
    from += part;
    bytes -= part;
  }
}

static Qp *qp_of(u32 qpn) {
  for (Qp *qp = standin_qps; qp; qp = qp->next)
    if (qp->qpn == qpn) return qp;
  return NULL;
}

/* The request has to wait for a Receive. */
enum { WAIT = -1 };

static int deliver(Qp *from, Qp *to, Send *send, const u8 *bytes, u64 length, u32 type) {
  u32 head = to->create.qp_create.qp_type == UD ? GRH : 0;
  Receive *receive = take_receive(to);
  uvp_wc_t wc;
  u8 grh[GRH] = {0};
  if (!receive) return WAIT;
  if (type == WC_RECV && total(receive->sges, receive->count) < length + head) {
    wc = blank(to, 0, type, WCS_LOCAL_LENGTH);
    complete_receive(to, receive, wc, 0);
    to->var.state = ERRORED;
    return WCS_REMOTE_INVALID;
  }
  if (type == WC_RECV && !may(to, receive->sges, receive->count, AC_LOCAL_WRITE)) {
    wc = blank(to, 0, type, WCS_LOCAL_PROTECTION);
    complete_receive(to, receive, wc, 0);
    to->var.state = ERRORED;
    return WCS_REMOTE_OP;
  }
  wc = blank(to, 0, type, WCS_SUCCESS);
  wc.length = (u32)(length + head);
  if (send->wr.send_opt & IMMEDIATE) {
    wc.recv_opt |= IMMEDIATE;
    wc.immediate_data = send->wr.immediate_data;
  }
  wc.remote_qp = _byteswap_ulong(from->qpn);
  wc.pkey_index = 1;
  wc.remote_lid = _byteswap_ushort(0x0203);
  wc.remote_sl = 4;
  wc.path_bits = 5;
  if (head) wc.recv_opt |= 4;
  if (type == WC_RECV) {
    u8 *whole = standin_allocate(head + length + 1);
    grh[0] = 0x60;
    memcpy(whole, grh, head);
    memcpy(whole + head, bytes, length);
    scatter(receive->sges, receive->count, whole, head + length);
    standin_release(whole);
  }
  complete_receive(to, receive, wc, (send->wr.send_opt & SOLICITED) != 0);
  return WCS_SUCCESS;
}

static int exchange(Send *send, u64 *at) {
  u64 before = *at, one = _byteswap_uint64(send->wr.wr.remote_ops.atomic1), two = _byteswap_uint64(send->wr.wr.remote_ops.atomic2);
  if (send->wr.wr_type == WR_FETCH_ADD) *at = before + one;
  else if (before == one) *at = two;
  scatter(send->sges, send->wr.num_ds, (u8 *)&before, 8);
  return WCS_SUCCESS;
}

static int remote(Qp *qp, Qp *peer, Send *send, u8 *bytes, u64 length) {
  static const u32 rights[] = {0, AC_WRITE, AC_READ, AC_ATOMIC, AC_ATOMIC};
  u64 at = send->wr.wr.remote_ops.vaddr;
  u32 type = send->wr.wr_type, rkey = _byteswap_ulong(send->wr.wr.remote_ops.rkey);
  if (length && !remote_access(peer, rkey, at, length, rights[type])) {
    peer->var.state = ERRORED;
    return WCS_REMOTE_ACCESS;
  }
  if (type == WR_RDMA_READ) scatter(send->sges, send->wr.num_ds, (u8 *)(ULONG_PTR)at, length);
  else if (type == WR_RDMA_WRITE) {
    if (send->wr.send_opt & IMMEDIATE) {
      int result = deliver(qp, peer, send, bytes, length, WC_RECV_RDMA_WRITE);
      if (result != WCS_SUCCESS) return result;
    }
    memcpy((void *)(ULONG_PTR)at, bytes, length);
  } else return exchange(send, (u64 *)(ULONG_PTR)at);
  return WCS_SUCCESS;
}

static int execute(Qp *qp, Send *send) {
  u32 type = send->wr.wr_type, write = type >= WR_RDMA_READ, datagram = qp->create.qp_create.qp_type == UD;
  u64 length = send->wr.send_opt & INLINE ? send->wr.num_ds : total(send->sges, send->wr.num_ds);
  Qp *peer = qp_of(datagram ? _byteswap_ulong(send->wr.wr.ud.remote_qp) : qp->var.other);
  u8 *bytes = send->bytes;
  int result;
  if (!(send->wr.send_opt & INLINE) && !may(qp, send->sges, send->wr.num_ds, write ? AC_LOCAL_WRITE : 0)) return WCS_LOCAL_PROTECTION;
  if (datagram) {
    /* The datagram is lost if no queue pair has the QPN, the Q_Key and a Receive. */
    if (!peer || peer->var.other != _byteswap_ulong(send->wr.wr.ud.remote_qkey) || peer->var.state < RTR || peer->var.state == ERRORED)
      return WCS_SUCCESS;
  } else if (!peer || peer->var.state < RTR) return WAIT;
  else if (peer->var.state == ERRORED) return 9; /* retries exhausted */
  if (!(send->wr.send_opt & INLINE)) {
    bytes = standin_allocate(length + 1);
    if (!write) gather(bytes, send->sges, send->wr.num_ds);
  }
  result = type == WR_SEND ? deliver(qp, peer, send, bytes, length, WC_RECV) : remote(qp, peer, send, bytes, length);
  if (bytes != send->bytes) standin_release(bytes);
  return datagram ? WCS_SUCCESS : result;
}

static void flush(Qp *qp) {
  Receive *receive;
  while (qp->first_send) {
    Send *send = qp->first_send;
    qp->first_send = send->next;
    qp->sends--;
    complete_send(qp, send->wr.wr_id, SIGNALED, send->wr.wr_type, WCS_FLUSHED, 0);
    standin_release(send);
  }
  while (!qp->srq && (receive = take_receive(qp)) != NULL) complete_receive(qp, receive, blank(qp, 0, WC_RECV, WCS_FLUSHED), 0);
}

static int run_qp(Qp *qp) {
  int moved = 0;
  if (qp->var.state == RESET) {
    drop_sends(qp);
    drop_receives(&qp->receives);
  }
  if (qp->var.state == ERRORED) flush(qp);
  while (qp->var.state == RTS && qp->first_send) {
    Send *send = qp->first_send;
    int result = execute(qp, send);
    if (result == WAIT) break;
    moved = 1;
    qp->first_send = send->next;
    qp->sends--;
    complete_send(qp, send->wr.wr_id, send->wr.send_opt, send->wr.wr_type, (u32)result,
                  send->wr.wr_type == WR_RDMA_READ ? (u32)total(send->sges, send->wr.num_ds) : 0);
    standin_release(send);
    if (result != WCS_SUCCESS) {
      qp->var.state = ERRORED;
      flush(qp);
    }
  }
  return moved;
}

void run_hca(void) {
  for (int moved = 1; moved;) {
    moved = 0;
    for (Qp *qp = standin_qps; qp; qp = qp->next) moved |= run_qp(qp);
  }
}
