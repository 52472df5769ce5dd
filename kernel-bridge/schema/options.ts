/** Options of the soft kernel and its HCA: meanings, defaults and limits. */
import { DEFAULT_PKEY } from '../ioctl/constants.js';
import { cmOptions } from './cm-options.js';
import type { OptionGroup } from './describe.js';
import { faultOptions } from './fault-options.js';
import { rcOptions } from './rc-options.js';

export const options: OptionGroup = {
  interface: 'KernelOptions',
  about: 'Options of the soft kernel and its HCA, complete.',
  options: {
    cm: { about: 'The connection manager.', group: cmOptions },
    rc: { about: 'Reliable connections.', group: rcOptions },
    keepAliveMs: {
      about: 'Interval of probes on idle established wire connections (zero-length RDMA WRITE); 0: none.',
      range: [0, 3_600_000],
      default: 10_000,
      cpp: 'TransportOptions',
    },
    rnrPatienceMs: {
      about:
        'The least time for which a message waits for a Receive that is posted late. It applies to a sender whose peer has asked for 6 RNR ' +
        'retries or more and has no shared receive queue, and to a receiver that asks its peer for as many: its RNR timers grow, so that 6 ' +
        'of them take this long (with other implementations at most a little more than one second). A connection with a smaller count keeps ' +
        'that count and `rc.minRnrTimerCode`; with 0 all connections do.',
      range: [0, 600_000],
      default: 1000,
      cpp: 'TransportOptions',
    },
    ecn: {
      about:
        "Sends connections' packets as ECN-capable, ECT(0). Received marks are always answered with CNPs.",
      default: false,
      cpp: 'TransportOptions',
    },
    window: {
      about:
        'Maximum of PSNs in flight per QP; fewer after losses and congestion notifications, up to twice as many small messages on the local ' +
        'link.',
      range: [1, 4096],
      default: 128,
      cpp: 'TransportOptions',
    },
    longWindowBytes: {
      about:
        'Maximum of bytes in flight per QP towards another process with this engine, where the round trip is longer than 0.25 ms: the window ' +
        'grows to what the path takes, up to this. Other peers get no more than `window`. 0: nor does any.',
      range: [0, 2 ** 30],
      default: 32 * 2 ** 20,
      cpp: 'TransportOptions',
    },
    link: {
      about:
        'The link for connections between processes of this host. `auto`: shared memory, where both processes belong to the same user and ' +
        "neither forces the wire. `wire`: UDP. The HCA's counters `local_link_*` show the result.",
      choice: ['auto', 'wire'],
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
    statistics: {
      about:
        'Answers other processes of this user that ask for statistics (`nd stat`, `nd top`): counters, queue pairs, connections, and sizes of ' +
        'registrations; never keys, addresses of memory, or what it holds. It costs nothing until somebody asks.',
      default: true,
    },
    receiveBufferBytes: {
      about: "Bytes of the socket's receive buffer.",
      range: [65_536, 2 ** 28],
      default: 4 * 2 ** 20,
      cpp: 'LinkOptions',
    },
    faults: { about: 'Faults of the link, for tests.', group: faultOptions, cpp: 'LinkOptions' },
    pkeys: {
      about:
        'P_Key tables of the ports: `[0xffff, 0x8001]` for all, or `{ eth0: [0x8001] }` by interface; other interfaces have the default ' +
        "partition only. Connections use the first entry unless a queue pair's `pkeyIndex` or a path record selects another. `setPartitions` " +
        'replaces the tables while the kernel runs.',
      checked: 'number[] | Record<string, number[]>',
      default: [DEFAULT_PKEY],
    },
    hca: {
      about:
        "Which HCAs the soft kernel has. `auto`: the system's RDMA devices, and the software HCA for all addresses that none of them has; " +
        '`soft`: the software HCA alone; `rdma`: RDMA devices alone; or the name of one of them, such as `mlx5_0`. Where there is none of ' +
        "those asked for, opening fails. Options of packets, timers, faults and captures are the software HCA's.",
      checked: 'string',
      default: 'auto',
    },
    kernel: {
      about:
        'Behind which door the kernel is: `driver`, the WinVerbs driver of Windows; `soft`, the soft kernel with its software HCA; `auto`, the ' +
        'driver where the system has one, else the soft kernel. What a thread has opened first it has from then on.',
      checked: "'auto' | 'driver' | 'soft'",
      default: 'auto',
    },
    startTimeoutMs: {
      about: "Maximum wait for the soft kernel's thread when a device file is opened.",
      range: [100, 600_000],
      default: 10_000,
    },
  },
};
