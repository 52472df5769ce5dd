#!/usr/bin/env python3
# The guest's queue pairs, driven by the other side: verbs by name over TCP port 18516, one JSON object per line in each
# direction. It serves one client and ends when that disconnects. Needs a guest with Python.
#
#   {"do": "qp", "mtu", "gid", "size", "mr", "access", "depth", "retry", "rnr", "minrnr", "timeout"}
#        replaces the RC queue pair, CQ and memory by new ones; "mr" and "access" are
#        access flags of libibverbs: {"qpn", "psn", "gid", "addr", "rkey"}
#   {"do": "connect", "qpn", "psn", "gid", "tclass"}    moves the queue pair to RTS
#   {"do": "recv", "at", "len"}                 posts a receive
#   {"do": "post", "ops": [{"op", "at", "len", "addr", "rkey", "imm", "want", "swap"}, ...]}
#        posts requests; "op" is send, send_imm, send_inv, write, write_imm, read, cas or add
#   {"do": "wc", "count"}                       waits for completions: {"wcs": [{"status", "opcode", "len", "flags", "imm"}]}
#   {"do": "window", "at", "len", "access"}     binds a new type 2 window: {"rkey", "status"}
#   {"do": "invalidate", "rkey"}                local invalidate: {"status"}
#   {"do": "watch"}                             captures packets on eth0 from now on; {"do": "seen", "count"}
#        the IP headers of the next RC packets: {"seen": [{"version", "class", "label", "hops"}]}
#   {"do": "tally"}                             all RoCE packets since "watch", in both directions:
#        {"tally": [{"out", "version", "opcode", "ecn", "nosum", "count"}]}; nosum: the UDP checksum is 0
#   {"do": "fill", "at", "len", "seed"}  {"do": "crc", "at", "len"}  {"do": "state"}
#
# A failed operation of the library returns {"error"}.
import argparse, socket, struct, time, zlib
from lines import serve
import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

PORT = 18516
WAIT = 20
BLOCK = 4093
OPS = dict(send=e.IBV_WR_SEND, send_imm=e.IBV_WR_SEND_WITH_IMM, send_inv=e.IBV_WR_SEND_WITH_INV,
           write=e.IBV_WR_RDMA_WRITE, write_imm=e.IBV_WR_RDMA_WRITE_WITH_IMM, read=e.IBV_WR_RDMA_READ,
           cas=e.IBV_WR_ATOMIC_CMP_AND_SWP, add=e.IBV_WR_ATOMIC_FETCH_AND_ADD)
ETH_P_ALL, ROCE, RC = 3, 4791, 0x20
# Python's socket module lacks this. The captured packets may be megabytes.
SO_RCVBUFFORCE, TAP_BYTES = 33, 64 << 20
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}


class Peer:
    def __init__(self, dev):
        self.ctx = Context(name=dev)
        self.pd = PD(self.ctx)
        self.qp = self.cq = self.mr = None
        self.windows = []
        self.tap = None

    def close(self):
        # A bound window keeps its queue pair. If the queue pair is destroyed first, rxe waits 50 s for the window.
        for it in [*self.windows, self.qp, self.mr, self.cq]:
            if it is not None:
                it.close()
        self.qp = self.cq = self.mr = None
        self.windows = []

    def do_qp(self, m):
        self.close()
        self.m = m
        self.cq = CQ(self.ctx, 256)
        self.mr = MR(self.pd, m['size'], m['mr'])
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, sq_sig_all=1,
                          cap=QPCap(max_send_wr=64, max_recv_wr=64, max_send_sge=1, max_recv_sge=1))
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = m['access']
        self.qp = QP(self.pd, init, attr)
        return dict(qpn=self.qp.qp_num, psn=0xfffff0, gid=str(self.ctx.query_gid(1, m['gid'])),
                    addr=self.mr.buf, rkey=self.mr.rkey)

    def do_connect(self, far):
        m = self.m
        a = QPAttr(port_num=1)
        a.qp_access_flags = m['access']
        a.dest_qp_num, a.rq_psn, a.sq_psn = far['qpn'], far['psn'], 0xfffff0
        a.path_mtu = MTUS[m['mtu']]
        a.max_rd_atomic = a.max_dest_rd_atomic = m['depth']
        a.min_rnr_timer, a.timeout, a.retry_cnt, a.rnr_retry = m['minrnr'], m['timeout'], m['retry'], m['rnr']
        gr = GlobalRoute(dgid=GID(far['gid']), sgid_index=m['gid'])
        gr.hop_limit = 64
        gr.traffic_class = far.get('tclass', 0)
        a.ah_attr = AHAttr(port_num=1, is_global=1, gr=gr)
        self.qp.to_rts(a)
        return {}

    def sge(self, m):
        return SGE(self.mr.buf + m['at'], m['len'], self.mr.lkey)

    def do_recv(self, m):
        self.qp.post_recv(RecvWR(sg=[self.sge(m)], num_sge=1))
        return {}

    def do_post(self, m):
        for o in m['ops']:
            w = SendWR(opcode=OPS[o['op']], num_sge=1, sg=[self.sge(o)])
            if o['op'] in ('cas', 'add'):
                w.set_wr_atomic(o['rkey'], o['addr'], o['want'], o['swap'])
            elif 'addr' in o:
                w.set_wr_rdma(o['rkey'], o['addr'])
            if o['op'].endswith('_imm'):
                w.imm_data = socket.htonl(o['imm'])
            if o['op'] == 'send_inv':
                w.imm_data = o['rkey']
            self.qp.post_send(w)
        return {}

    def do_wc(self, m):
        end = time.time() + WAIT
        wcs = []
        while len(wcs) < m['count'] and time.time() < end:
            n, more = self.cq.poll(m['count'] - len(wcs))
            wcs += [dict(status=w.status, opcode=w.opcode, len=w.byte_len, flags=w.wc_flags,
                         imm=socket.ntohl(w.imm_data & 0xffffffff)) for w in more[:n]]
            if not n:
                time.sleep(0.001)
        return dict(wcs=wcs)

    def do_window(self, m):
        mw = MW(self.pd, mw_type=e.IBV_MW_TYPE_2)
        self.windows.append(mw)
        w = SendWR(opcode=e.IBV_WR_BIND_MW)
        w.set_bind_wr(mw, MWBindInfo(self.mr, self.mr.buf + m['at'], m['len'], m['access']))
        self.qp.post_send(w)
        return dict(rkey=w.rkey, status=self.do_wc(dict(count=1))['wcs'][0]['status'])

    def do_invalidate(self, m):
        w = SendWR(opcode=e.IBV_WR_LOCAL_INV)
        w.imm_data = m['rkey']
        self.qp.post_send(w)
        return dict(status=self.do_wc(dict(count=1))['wcs'][0]['status'])

    def do_watch(self, m):
        self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.tap.bind(('eth0', ETH_P_ALL))
        self.tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, TAP_BYTES)
        self.tap.settimeout(WAIT)
        return {}

    def do_seen(self, m):
        seen = []
        while len(seen) < m['count']:
            p, where = self.tap.recvfrom(65536)
            if where[2] == socket.PACKET_OUTGOING or len(p) < 60:
                continue
            v = p[0] >> 4
            at = dict([(4, 20), (6, 40)]).get(v)
            if at is None or p[9 if v == 4 else 6] != 17 or p[at + 2:at + 4] != struct.pack('!H', ROCE) or p[at + 8] >= RC:
                continue
            word = struct.unpack('!I', p[:4])[0]
            seen.append(dict([('version', v), ('class', p[1] if v == 4 else word >> 20 & 0xff),
                              ('label', 0 if v == 4 else word & 0xfffff), ('hops', p[8 if v == 4 else 7])]))
        self.tap.close()
        return dict(seen=seen)

    def do_tally(self, m):
        counts = {}
        self.tap.setblocking(False)
        while True:
            try:
                p, where = self.tap.recvfrom(96)
            except BlockingIOError:
                break
            v = p[0] >> 4
            at = dict([(4, 20), (6, 40)]).get(v)
            if at is None or p[9 if v == 4 else 6] != 17 or p[at + 2:at + 4] != struct.pack('!H', ROCE):
                continue
            ecn = p[1] & 3 if v == 4 else p[1] >> 4 & 3
            key = where[2] == socket.PACKET_OUTGOING, v, p[at + 8], ecn, p[at + 6:at + 8] == bytes(2)
            counts[key] = counts.get(key, 0) + 1
        self.tap.close()
        names = 'out', 'version', 'opcode', 'ecn', 'nosum'
        return dict(tally=[dict(zip(names, key), count=n) for key, n in counts.items()])

    def do_fill(self, m):
        block = bytes((i * i * 7 + i + m['seed']) & 0xff for i in range(BLOCK))
        if m['len']:
            self.mr.write((block * (m['len'] // BLOCK + 1))[:m['len']], m['len'], m['at'])
        return {}

    def do_crc(self, m):
        return dict(crc=zlib.crc32(self.mr.read(m['len'], m['at'])) if m['len'] else 0)

    def do_state(self, m):
        return dict(state=self.qp.query(e.IBV_QP_STATE)[0].qp_state)


ap = argparse.ArgumentParser()
ap.add_argument('--dev', default='rxe0')
opt = ap.parse_args()
peer = Peer(opt.dev)
serve(PORT, peer)
peer.close()
