#!/usr/bin/env python3
# Sends to an IPv6 multicast group as mckey -s does, whose groups rdma_cm does not join on RoCEv2:
# datagrams with the queue pair number as immediate data. Needs a guest with Python.
#
#   group.py GROUP COUNT BYTES
import argparse, ipaddress, socket, sys, time
import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SendWR, SGE

ap = argparse.ArgumentParser()
ap.add_argument('group')
ap.add_argument('count', type=int)
ap.add_argument('bytes', type=int)
opt = ap.parse_args()
gid = ipaddress.ip_address(opt.group).exploded

QKEY = 0x01234567
ctx = Context(name='rxe0')
pd = PD(ctx)
cq = CQ(ctx, opt.count)
mr = MR(pd, opt.bytes, e.IBV_ACCESS_LOCAL_WRITE)
init = QPInitAttr(qp_type=e.IBV_QPT_UD, scq=cq, rcq=cq, sq_sig_all=1,
                  cap=QPCap(max_send_wr=opt.count, max_recv_wr=opt.count, max_send_sge=1, max_recv_sge=1))
attr = QPAttr(port_num=1)
attr.qkey = QKEY
qp = QP(pd, init, attr)
gr = GlobalRoute(dgid=GID(gid), sgid_index=2)
gr.hop_limit = 64
ah = AH(pd, attr=AHAttr(port_num=1, is_global=1, gr=gr))
for _ in range(opt.count):
    w = SendWR(opcode=e.IBV_WR_SEND_WITH_IMM, num_sge=1, sg=[SGE(mr.buf, opt.bytes, mr.lkey)])
    w.imm_data = socket.htonl(qp.qp_num)
    w.set_wr_ud(ah, 0xffffff, QKEY)
    qp.post_send(w)

end = time.time() + 30
done = 0
while done < opt.count and time.time() < end:
    n, wcs = cq.poll(opt.count - done)
    for w in wcs[:n]:
        if w.status != 0:
            sys.exit('status %d' % w.status)
    done += n
    if not n:
        time.sleep(0.001)
sys.exit(0 if done == opt.count else 'only %d of %d datagrams left' % (done, opt.count))
