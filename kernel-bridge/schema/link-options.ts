/** Options of the links, local and over UDP: selection, ICRC, direct access, capture, socket buffer. */
import type { Option } from './describe.js';

export const linkOptions = {
  link: {
    about:
      'The link for connections between processes on this host. `auto`: shared memory if both processes belong to the same user and ' +
      'neither requires UDP; UDP port 4791 is opened when it is needed. `wire`: UDP. `local`: shared memory only. The process has the software HCA and no ' +
      'UDP socket; addresses other than loopback, datagram queue pairs and peers on other hosts end in NOT_SUPPORTED, and connections to a process with ' +
      "`wire` are refused. The HCA's counters `local_link_*` show which link is used.",
    choice: ['auto', 'wire', 'local'],
    default: 'auto',
    cpp: 'LinkOptions',
    cppEnum: 'LinkChoice',
  },
  icrc: {
    about:
      'How the checksum (ICRC) of IPv4 packets is checked, although it covers an ID that UDP sockets do not report. `solved`: a packet is accepted if any ID matches ' +
      'the checksum, which lets one corrupt packet in 2^15 pass; needs no privilege. `exact`: the ID is read through a raw socket, which needs the ' +
      'capability CAP_NET_RAW; without it, opening fails. IPv6 has no such ID and is always checked exactly.',
    choice: ['solved', 'exact'],
    default: 'solved',
    cpp: 'LinkOptions',
    cppEnum: 'IcrcCheck',
  },
  direct: {
    about:
      'Lets connected processes of this user map memory from `allocate()` whose keys allow it, and execute RDMA Writes, Reads and atomics on ' +
      'it themselves, without CPU time of this process. Both peers must enable it. Without it, peers cannot map the memory for writing.',
    default: true,
    cpp: 'LinkOptions',
  },
  capture: {
    about:
      'Writes all packets of the links to a new pcapng file at this path; `%p` becomes the process id. Existing files are not overwritten ' +
      'and links are not followed: if `x.pcapng` exists, the file is `x-2.pcapng`, and so on, up to `x-1000.pcapng`. Connections established ' +
      'while a process has this option or `faults` use UDP, because the local link has no packets.',
    checked: 'string',
    default: '',
    cpp: 'LinkOptions',
  },
  receiveBufferBytes: {
    about: "Size of the socket's receive buffer, in bytes.",
    range: [65_536, 2 ** 28],
    default: 4 * 2 ** 20,
    cpp: 'LinkOptions',
  },
} satisfies Readonly<Record<string, Option>>;
