#!/usr/bin/env python3
# The guest's rdma_cm, driven by the other side: librdmacm's calls by name over TCP port 18517, one JSON object per line in each direction.
# It serves one client and ends when that disconnects. Needs a guest with Python.
#
#   {"do": "listen", "ps", "addr", "port"}      "ps" is tcp or udp: {"id"}
#   {"do": "connect", "ps", "own", "addr", "port", "private", "qp"}
#        resolves the address and connects; the reply is an event: {"id"}
#   {"do": "request", "id"}                     the next request of a listener: {"id", "private"}
#   {"do": "event", "id", "seconds"}            waits for the next event:
#        {"event", "status", "private", "qpn", "qkey"}
#   {"do": "accept", "id", "private", "qp"}     with "qp" its own queue pair, otherwise only a number
#   {"do": "reject", "id", "private", "ece"}    with "ece" for a vendor option, otherwise by the consumer
#   {"do": "establish", "id"}  {"do": "disconnect", "id"}  {"do": "destroy", "id"}
#   {"do": "counters"}                          counters of ib_cm: {"cm_tx_msgs": {"req", ...}, ...}
#   {"do": "drop", "attribute", "family", "count"}
#        drops the next CM messages of this attribute id, then passes one, and so on
#   {"do": "dropped", "attribute"}              number of dropped messages since: {"count"}
#   {"do": "pass", "attribute"}                 stops dropping them
#
# "private" is hexadecimal. A failed call of librdmacm returns {"error"}.
import ctypes as c, glob, ipaddress, os, re, select, socket, struct, subprocess
from lines import serve

PORT = 18517
WAIT = 30
MS = 5000
SPACES = dict(tcp=0x0106, udp=0x0111)
QP_TYPES = dict(tcp=2, udp=4)
# A queue pair that does not exist, because ib_cm only passes the number on.
NUMBER = 0x7ead
ETHERNET = dict([(4, 'ip'), (6, 'ipv6')])
HEADER = dict([(4, 20), (6, 40)])

rdma = c.CDLL('librdmacm.so.1', use_errno=True)
u8, u16, u32, u64, ptr = c.c_uint8, c.c_uint16, c.c_uint32, c.c_uint64, c.c_void_p


class Channel(c.Structure):
    _fields_ = [('fd', c.c_int)]


class ConnParam(c.Structure):
    _fields_ = [('data', ptr), ('length', u8), ('responder_resources', u8), ('initiator_depth', u8),
                ('flow_control', u8), ('retry', u8), ('rnr_retry', u8), ('srq', u8), ('qpn', u32)]


class UdParam(c.Structure):
    # The address handle's attributes have 32 bytes, aligned to 8.
    _fields_ = [('data', ptr), ('length', u8), ('ah', u64 * 4), ('qpn', u32), ('qkey', u32)]


class Param(c.Union):
    _fields_ = [('conn', ConnParam), ('ud', UdParam)]


class Event(c.Structure):
    _fields_ = [('id', ptr), ('listener', ptr), ('event', c.c_int), ('status', c.c_int), ('param', Param)]


class QpInit(c.Structure):
    _fields_ = [('context', ptr), ('send_cq', ptr), ('recv_cq', ptr), ('srq', ptr), ('max_send_wr', u32),
                ('max_recv_wr', u32), ('max_send_sge', u32), ('max_recv_sge', u32), ('max_inline', u32),
                ('type', c.c_int), ('signal_all', c.c_int)]


rdma.rdma_create_event_channel.restype = c.POINTER(Channel)
rdma.rdma_event_str.restype = c.c_char_p


def call(name, *args):
    if getattr(rdma, name)(*args) != 0:
        raise OSError('%s: %s' % (name, os.strerror(c.get_errno())))


def sockaddr(addr, port):
    ip = ipaddress.ip_address(addr)
    if ip.version == 4:
        return c.create_string_buffer(struct.pack('=H', socket.AF_INET) + struct.pack('!H', port) + ip.packed + bytes(8), 16)
    return c.create_string_buffer(struct.pack('=H', socket.AF_INET6) + struct.pack('!HI', port, 0) + ip.packed + bytes(4), 28)


class Id:
    """An rdma_cm_id with an event channel of its own."""

    def __init__(self, ps, handle=None):
        self.ps = ps
        self.qp = False
        self.channel = rdma.rdma_create_event_channel()
        if not self.channel:
            raise OSError('rdma_create_event_channel: ' + os.strerror(c.get_errno()))
        if handle is None:
            self.handle = ptr()
            call('rdma_create_id', self.channel, c.byref(self.handle), None, SPACES[ps])
        else:
            self.handle = ptr(handle)
            call('rdma_migrate_id', self.handle, self.channel)

    def make_qp(self):
        init = QpInit(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1,
                      type=QP_TYPES[self.ps], signal_all=1)
        # Without a PD and CQs, the library creates them.
        call('rdma_create_qp', self.handle, None, c.byref(init))
        self.qp = True

    def event(self, seconds):
        """The next event: its name, and what it carries."""
        if not select.select([self.channel.contents.fd], [], [], seconds)[0]:
            raise OSError('nothing has happened within %s s' % seconds)
        event = c.POINTER(Event)()
        call('rdma_get_cm_event', self.channel, c.byref(event))
        e = event.contents
        param = e.param.ud if self.ps == 'udp' else e.param.conn
        told = dict(event=rdma.rdma_event_str(e.event).decode().replace('RDMA_CM_EVENT_', ''), status=e.status,
                    private=c.string_at(param.data, param.length).hex() if param.data else '', qpn=param.qpn,
                    qkey=param.qkey if self.ps == 'udp' else 0)
        handle = e.id
        call('rdma_ack_cm_event', event)
        return told, handle

    def await_event(self, name):
        told, _ = self.event(WAIT)
        if told['event'] != name:
            raise OSError('%s (%d) instead of %s' % (told['event'], told['status'], name))

    def destroy(self):
        if self.qp:
            rdma.rdma_destroy_qp(self.handle)
        rdma.rdma_destroy_id(self.handle)
        rdma.rdma_destroy_event_channel(self.channel)


def conn_param(m, kept):
    data = bytes.fromhex(m.get('private', ''))
    kept.append(c.create_string_buffer(data, max(len(data), 1)))
    return ConnParam(data=c.addressof(kept[-1]), length=len(data), responder_resources=4, initiator_depth=4,
                     retry=7, rnr_retry=7, qpn=NUMBER)


def tc(*args):
    return subprocess.run(['tc', *args], check=True, capture_output=True, text=True).stdout


class Peer:
    def __init__(self):
        self.ids = {}
        self.last = 0
        self.dropping = False

    def add(self, one):
        self.last += 1
        self.ids[self.last] = one
        return self.last

    def close(self):
        if self.dropping:
            tc('qdisc', 'del', 'dev', 'eth0', 'clsact')
        for one in self.ids.values():
            one.destroy()

    def do_listen(self, m):
        one = Id(m['ps'])
        call('rdma_bind_addr', one.handle, sockaddr(m['addr'], m['port']))
        call('rdma_listen', one.handle, 64)
        return dict(id=self.add(one))

    def do_connect(self, m):
        one = Id(m['ps'])
        key = self.add(one)
        call('rdma_resolve_addr', one.handle, sockaddr(m['own'], 0), sockaddr(m['addr'], m['port']), MS)
        one.await_event('ADDR_RESOLVED')
        call('rdma_resolve_route', one.handle, MS)
        one.await_event('ROUTE_RESOLVED')
        if m['qp']:
            one.make_qp()
        kept = []
        call('rdma_connect', one.handle, c.byref(conn_param(m, kept)))
        return dict(id=key)

    def do_request(self, m):
        listener = self.ids[m['id']]
        told, handle = listener.event(WAIT)
        if told['event'] != 'CONNECT_REQUEST':
            raise OSError('%s instead of a request' % told['event'])
        return dict(id=self.add(Id(listener.ps, handle)), private=told['private'])

    def do_event(self, m):
        return self.ids[m['id']].event(m['seconds'])[0]

    def do_accept(self, m):
        one = self.ids[m['id']]
        if m['qp']:
            one.make_qp()
        kept = []
        call('rdma_accept', one.handle, c.byref(conn_param(m, kept)))
        return {}

    def do_reject(self, m):
        data = bytes.fromhex(m['private'])
        call('rdma_reject_ece' if m['ece'] else 'rdma_reject', self.ids[m['id']].handle, data, u8(len(data)))
        return {}

    def do_establish(self, m):
        call('rdma_establish', self.ids[m['id']].handle)
        return {}

    def do_disconnect(self, m):
        call('rdma_disconnect', self.ids[m['id']].handle)
        return {}

    def do_destroy(self, m):
        self.ids.pop(m['id']).destroy()
        return {}

    def do_counters(self, m):
        told = {}
        for path in glob.glob('/sys/class/infiniband/rxe0/ports/1/cm_*/*'):
            kind, name = path.split('/')[-2:]
            told.setdefault(kind, {})[name] = int(open(path).read())
        return told

    def do_drop(self, m):
        if not self.dropping:
            subprocess.run(['modprobe', '-a', 'sch_ingress', 'cls_u32', 'act_gact'], check=True)
            # The qdisc may be left over from a stopped run.
            subprocess.run(['tc', 'qdisc', 'del', 'dev', 'eth0', 'clsact'], capture_output=True)
            tc('qdisc', 'add', 'dev', 'eth0', 'clsact')
            self.dropping = True
        # Behind the IP header: UDP 8, BTH 12, DETH 8, MAD header. A MAD to queue pair 1, of class 7.
        at = HEADER[m['family']]
        matches = [('u16', '4791', '0xffff', at + 2), ('u32', '1', '0x00ffffff', at + 12),
                   ('u16', '0x0107', '0xffff', at + 28), ('u16', str(m['attribute']), '0xffff', at + 44)]
        words = [w for kind, value, mask, off in matches for w in ('match', kind, value, mask, 'at', str(off))]
        # Not "drop", which is reported to rxe: it would retry immediately. Without hardware, "trap" drops silently.
        tc('filter', 'add', 'dev', 'eth0', 'egress', 'protocol', ETHERNET[m['family']],
           'pref', str(m['attribute']), 'u32', *words,
           'action', 'trap', 'random', 'determ', 'pass', str(m['count'] + 1))
        return {}

    def do_dropped(self, m):
        told = tc('-s', 'filter', 'show', 'dev', 'eth0', 'egress', 'pref', str(m['attribute']))
        return dict(count=int(re.search(r'Sent \d+ bytes (\d+) pkt', told).group(1)))

    def do_pass(self, m):
        tc('filter', 'del', 'dev', 'eth0', 'egress', 'pref', str(m['attribute']))
        return {}


peer = Peer()
serve(PORT, peer)
peer.close()
