#!/usr/bin/env python3
# A connection of the guest's rdma_cm that sends or posts its receive on command. The other side controls it with one JSON object per line
# in each direction over TCP port 18521. Needs a guest with Python.
#
#   {"do": "listen", "addr", "port"}  {"do": "accept"}     a server accepts one connection
#   {"do": "connect", "own", "addr", "port"}               a client
#        Both sides announce six RNR retries.
#   {"do": "receive"}  {"do": "send", "text"}              post one
#   {"do": "received"}  {"do": "sent"}                     wait for its completion: {"status", "text"}
import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.cmid import AddrInfo, CMID, ConnParam
from pyverbs.qp import QPCap, QPInitAttr
from lines import serve

PORT = 18521
BYTES = 64
RETRIES = 6


def info(passive, addr, port, own=None):
    flags = ce.RAI_PASSIVE if passive else 0
    if passive:
        return AddrInfo(src=addr, src_service=str(port), port_space=ce.RDMA_PS_TCP, flags=flags)
    return AddrInfo(src=own, dst=addr, dst_service=str(port), port_space=ce.RDMA_PS_TCP, flags=flags)


def sizes():
    return QPInitAttr(qp_type=e.IBV_QPT_RC, sq_sig_all=1,
                      cap=QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1))


def param():
    return ConnParam(resources=1, depth=1, retry=7, rnr_retry=RETRIES)


class Late:
    def memory(self):
        self.mr = self.id.reg_msgs(BYTES)

    def do_listen(self, m):
        self.listener = CMID(creator=info(True, m['addr'], m['port']), qp_init_attr=sizes())
        self.listener.listen()
        return {}

    def do_accept(self, m):
        self.id = self.listener.get_request()
        self.memory()
        self.id.accept(param())
        return {}

    def do_connect(self, m):
        self.id = CMID(creator=info(False, m['addr'], m['port'], m['own']), qp_init_attr=sizes())
        self.memory()
        self.id.connect(param())
        return {}

    def do_receive(self, m):
        self.id.post_recv(self.mr, BYTES)
        return {}

    def do_send(self, m):
        text = m['text'].encode()
        self.mr.write(text, len(text))
        self.id.post_send(self.mr, e.IBV_SEND_SIGNALED, len(text))
        return {}

    def told(self, wc):
        return dict(status=wc.status, text=self.mr.read(wc.byte_len, 0).decode() if wc.status == 0 else '')

    def do_received(self, m):
        return self.told(self.id.get_recv_comp())

    def do_sent(self, m):
        return dict(status=self.id.get_send_comp().status, text='')


serve(PORT, Late())
