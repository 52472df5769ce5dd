#!/usr/bin/env python3
# Messages in one direction over UC or UD, each with its number and bytes derived from it, so that a receiver can
# distinguish complete messages from broken ones. The other side controls this script with one JSON object per line in each
# direction over TCP port 18520. Needs a guest with Python.
#
#   {"do": "open", "type": "uc" or "ud", "count", "size", "mtu", "gid"}   {"qpn", "psn", "gid", "addr", "rkey"}
#   {"do": "connect", "qpn", "psn", "gid", "addr", "rkey"}
#   {"do": "send", "from", "count"}    sends messages; over UC every second one is a WRITE with immediate data
#   {"do": "mark"}                     sends the message that ends the stream, once the link's queue (netem) is empty
#   {"do": "sync"}                     does nothing
#   {"do": "report"}                   consumes received messages up to a mark: {"whole", "distinct", "broken", "marked"}
import socket, struct, subprocess, time
from lines import serve
import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

PORT = 18520
QKEY = 0x11111111
GRH = 40
MARK = 0xffffffff
MARK_BYTES = 8
# Time that a report waits for the mark.
WAIT = 0.2
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
BLOCK = bytes((i * i * 7 + i) & 0xff for i in range(4093))
SHIFT = [bytes((b + s) & 0xff for b in range(256)) for s in range(256)]


def message(number, size):
    block = BLOCK.translate(SHIFT[number & 0xff])
    return (struct.pack('>I', number) + block * (size // len(block) + 1))[:size]


class Stream:
    def __init__(self):
        self.ctx = Context(name='rxe0')
        self.pd = PD(self.ctx)

    def way(self, gid):
        gr = GlobalRoute(dgid=GID(gid), sgid_index=self.m['gid'])
        gr.hop_limit = 64
        return AHAttr(port_num=1, is_global=1, gr=gr)

    # Memory: a slot for each written number, one to send from, and one for each receive.
    def do_open(self, m):
        self.m = m
        self.uc = m['type'] == 'uc'
        self.receives = 2 * m['count'] + 64
        self.place = m['size'] + GRH
        self.recv_cq, self.send_cq = CQ(self.ctx, self.receives), CQ(self.ctx, 256)
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        self.mr = MR(self.pd, self.place * (m['count'] + 1 + self.receives), access)
        init = QPInitAttr(qp_type=e.IBV_QPT_UC if self.uc else e.IBV_QPT_UD, scq=self.send_cq, rcq=self.recv_cq, sq_sig_all=1,
                          cap=QPCap(max_send_wr=128, max_recv_wr=self.receives, max_send_sge=1, max_recv_sge=1))
        attr = QPAttr(port_num=1)
        if self.uc:
            attr.qp_access_flags = access
        else:
            attr.qkey = QKEY
        self.qp = QP(self.pd, init, attr)
        for i in range(self.receives):
            self.qp.post_recv(RecvWR(wr_id=i, sg=[SGE(self.received(i), self.place, self.mr.lkey)], num_sge=1))
        self.seen, self.whole, self.broken, self.marked = set(), 0, 0, False
        return dict(qpn=self.qp.qp_num, psn=0xfffff0, gid=str(self.ctx.query_gid(1, m['gid'])),
                    addr=self.mr.buf, rkey=self.mr.rkey)

    def received(self, i):
        return self.mr.buf + self.place * (self.m['count'] + 1 + i)

    def do_connect(self, far):
        self.far = far
        if not self.uc:
            self.ah = AH(self.pd, attr=self.way(far['gid']))
            return {}
        a = QPAttr(port_num=1)
        a.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        a.dest_qp_num, a.rq_psn, a.sq_psn = far['qpn'], far['psn'], 0xfffff0
        a.path_mtu = MTUS[self.m['mtu']]
        a.ah_attr = self.way(far['gid'])
        self.qp.to_rts(a)
        return {}

    def post(self, number, size):
        at = self.place * self.m['count']
        self.mr.write(message(number, size), size, at)
        written = self.uc and number != MARK and number % 2 == 1
        w = SendWR(opcode=e.IBV_WR_RDMA_WRITE_WITH_IMM if written else e.IBV_WR_SEND, num_sge=1,
                   sg=[SGE(self.mr.buf + at, size, self.mr.lkey)])
        if written:
            w.imm_data = socket.htonl(number)
            w.set_wr_rdma(self.far['rkey'], self.far['addr'] + number * self.place)
        if not self.uc:
            w.set_wr_ud(self.ah, self.far['qpn'], QKEY)
        self.qp.post_send(w)
        while True:
            n, wcs = self.send_cq.poll(1)
            if n:
                break
        if wcs[0].status != 0:
            raise RuntimeError('status %d' % wcs[0].status)

    def do_send(self, m):
        for number in range(m['from'], m['from'] + m['count']):
            self.post(number, self.m['size'])
        return {}

    def do_mark(self, m):
        # A message delayed by netem would arrive after the mark.
        while b'backlog 0b 0p' not in subprocess.check_output(['tc', '-s', 'qdisc', 'show', 'dev', 'eth0']):
            pass
        self.post(MARK, MARK_BYTES)
        return {}

    def do_sync(self, m):
        return {}

    def take(self, wc):
        if wc.status != 0:
            raise RuntimeError('status %d' % wc.status)
        size = self.m['size']
        if wc.wc_flags & e.IBV_WC_WITH_IMM:
            number = socket.ntohl(wc.imm_data & 0xffffffff)
            data, length = self.mr.read(size, number * self.place), wc.byte_len
        else:
            header = 0 if self.uc else GRH
            length = wc.byte_len - header
            at = self.received(wc.wr_id) - self.mr.buf
            data = self.mr.read(length, at + header)
            number = struct.unpack('>I', data[:4])[0]
        if number == MARK:
            self.marked = True
        elif number < self.m['count'] and length == size and data == message(number, size):
            self.whole += 1
            self.seen.add(number)
        else:
            self.broken += 1

    def do_report(self, m):
        end = time.time() + WAIT
        while time.time() < end and not self.marked:
            n, wcs = self.recv_cq.poll(16)
            for wc in wcs[:n]:
                self.take(wc)
        marked, self.marked = self.marked, False
        return dict(whole=self.whole, distinct=len(self.seen), broken=self.broken, marked=marked)


serve(PORT, Stream())
