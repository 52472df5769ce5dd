/** Options of the soft kernel and its HCA: meanings, defaults and limits. Those of a part of it are in `<part>-options.ts`. */
import { DEFAULT_PKEY } from '../ioctl/constants.js';
import { cmOptions } from './cm-options.js';
import type { OptionGroup } from './describe.js';
import { faultOptions } from './fault-options.js';
import { linkOptions } from './link-options.js';
import { rcOptions } from './rc-options.js';
import { transportOptions } from './transport-options.js';

// The generated interface has it after `statistics`.
const { receiveBufferBytes, ...link } = linkOptions;

export const options: OptionGroup = {
  interface: 'KernelOptions',
  about: 'Options of the soft kernel and its HCA, complete.',
  options: {
    cm: { about: 'The connection manager.', group: cmOptions },
    rc: { about: 'Reliable connections.', group: rcOptions },
    ...transportOptions,
    ...link,
    statistics: {
      about:
        'Answers other processes of this user that ask for statistics (`nd stat`, `nd top`): counters, queue pairs, connections, and sizes of ' +
        'registrations; never keys, addresses of memory, or what it holds. It costs nothing until somebody asks.',
      default: true,
    },
    receiveBufferBytes,
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
