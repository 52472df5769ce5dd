/** Options of the links, local and wire: which of them, ICRC, direct access, capture, socket buffer. */
import type { Option } from './describe.js';

export const linkOptions = {
  link: {
    about:
      'The link for connections between processes of this host. `auto`: shared memory, where both processes belong to the same user and ' +
      'neither forces the wire; UDP port 4791 is opened when something needs it. `wire`: UDP. `local`: shared memory alone. The process has the software HCA and no ' +
      'UDP socket; addresses other than loopback, datagram queue pairs and peers of other hosts end in NOT_SUPPORTED, and connections to a process with ' +
      "`wire` are refused. The HCA's counters `local_link_*` show the result.",
    choice: ['auto', 'wire', 'local'],
    default: 'auto',
    cpp: 'LinkOptions',
    cppEnum: 'LinkChoice',
  },
  icrc: {
    about:
      'How the checksum (ICRC) of IPv4 packets is checked, which covers an ID that UDP sockets hide. `solved`: accepted if any ID explains ' +
      'it, which lets one corrupt packet in 2^15 pass; needs no privilege. `exact`: the ID is read by a raw socket, which needs the ' +
      'privilege CAP_NET_RAW; without it opening fails. IPv6 has no such ID and is always checked exactly.',
    choice: ['solved', 'exact'],
    default: 'solved',
    cpp: 'LinkOptions',
    cppEnum: 'IcrcCheck',
  },
  direct: {
    about:
      'Direct access: connected processes of this user map memory of `allocate()` whose keys allow it, and execute RDMA Writes, Reads and ' +
      "atomics there themselves, without this process's CPU. Both ends must allow it. Without it the peers cannot map the memory for " +
      'writing.',
    default: true,
    cpp: 'LinkOptions',
  },
  capture: {
    about:
      'Writes all packets of the links to a new pcapng file at this path; `%p` becomes the process id. Nothing that exists is overwritten, ' +
      'and no link is followed: if `x.pcapng` exists, the file is `x-2.pcapng`, and so on, up to `x-1000.pcapng`. Connections that begin ' +
      'while a process has this option or `faults` use the wire, where packets can be seen; the local link has none.',
    checked: 'string',
    default: '',
    cpp: 'LinkOptions',
  },
  receiveBufferBytes: {
    about: "Bytes of the socket's receive buffer.",
    range: [65_536, 2 ** 28],
    default: 4 * 2 ** 20,
    cpp: 'LinkOptions',
  },
} satisfies Readonly<Record<string, Option>>;
