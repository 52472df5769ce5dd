#!/usr/bin/env python3
# Sends to an IPv6 multicast group like mckey -s, or waits for its messages like mckey. rdma_cm does not join such groups on RoCEv2. The
# datagrams have the queue pair number as immediate data. Needs a guest with Python.
#
#   group.py [--member] GROUP COUNT BYTES
import argparse, ipaddress, os, socket, struct, sys, time
import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

ap = argparse.ArgumentParser()
ap.add_argument('group')
ap.add_argument('count', type=int)
ap.add_argument('bytes', type=int)
ap.add_argument('--member', action='store_true')
opt = ap.parse_args()
gid = ipaddress.ip_address(opt.group).exploded

QKEY = 0x01234567
ctx = Context(name='rxe0')
pd = PD(ctx)
cq = CQ(ctx, opt.count)
GRH = 40
room = GRH + opt.bytes
mr = MR(pd, opt.count * room, e.IBV_ACCESS_LOCAL_WRITE)
init = QPInitAttr(qp_type=e.IBV_QPT_UD, scq=cq, rcq=cq, sq_sig_all=1,
                  cap=QPCap(max_send_wr=opt.count, max_recv_wr=opt.count, max_send_sge=1, max_recv_sge=1))
attr = QPAttr(port_num=1)
attr.qkey = QKEY
qp = QP(pd, init, attr)


def attach():
    """Attaches the queue pair to the group like ibv_attach_mcast, which pyverbs lacks."""
    listener = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    member = ipaddress.ip_address(opt.group).packed + struct.pack('=I', socket.if_nametoindex('eth0'))
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    ATTACH_MCAST = 30
    for handle in range(16):
        # The queue pair has one of this process's handles.
        command = struct.pack('=IHH', ATTACH_MCAST, 8, 0) + ipaddress.ip_address(opt.group).packed
        try:
            os.write(ctx.cmd_fd, command + struct.pack('=IHH', handle, 0, 0))
            return listener
        except OSError:
            pass
    sys.exit('the queue pair could not be attached')


def completions():
    end = time.time() + 30
    done = []
    while len(done) < opt.count and time.time() < end:
        n, wcs = cq.poll(opt.count - len(done))
        for w in wcs[:n]:
            if w.status != 0:
                sys.exit('status %d' % w.status)
        done += wcs[:n]
        if not n:
            time.sleep(0.001)
    if len(done) < opt.count:
        sys.exit('only %d of %d datagrams' % (len(done), opt.count))
    return done


if opt.member:
    for i in range(opt.count):
        qp.post_recv(RecvWR(sg=[SGE(mr.buf + i * room, room, mr.lkey)], num_sge=1))
    group = attach()
    print('joined', opt.group)
    for i, w in enumerate(completions()):
        told = socket.ntohl(w.imm_data & 0xffffffff)
        if w.byte_len != room or told != w.src_qp:
            sys.exit('%d bytes, of queue pair %#x that names %#x' % (w.byte_len, w.src_qp, told))
        if mr.read(16, i * room + 24) != ipaddress.ip_address(opt.group).packed:
            sys.exit('a datagram to somebody else')
    sys.exit(0)

gr = GlobalRoute(dgid=GID(gid), sgid_index=2)
gr.hop_limit = 64
ah = AH(pd, attr=AHAttr(port_num=1, is_global=1, gr=gr))
for _ in range(opt.count):
    w = SendWR(opcode=e.IBV_WR_SEND_WITH_IMM, num_sge=1, sg=[SGE(mr.buf, opt.bytes, mr.lkey)])
    w.imm_data = socket.htonl(qp.qp_num)
    w.set_wr_ud(ah, 0xffffff, QKEY)
    qp.post_send(w)

completions()
