/** Options of the soft kernel and its HCA: meanings, defaults and limits. Options of one component are in `<component>-options.ts`. */
import { DEFAULT_PKEY } from '../ioctl/constants.js';
import { cmOptions } from './cm-options.js';
import type { OptionGroup } from './describe.js';
import { faultOptions } from './fault-options.js';
import { linkOptions } from './link-options.js';
import { rcOptions } from './rc-options.js';
import { transportOptions } from './transport-options.js';

// In the generated interface, `receiveBufferBytes` follows `statistics`.
const { receiveBufferBytes, ...link } = linkOptions;

export const options: OptionGroup = {
  interface: 'KernelOptions',
  about: 'All options of the soft kernel and its HCA.',
  options: {
    cm: { about: 'Options of the connection manager.', group: cmOptions },
    rc: { about: 'Options of reliable connections.', group: rcOptions },
    ...transportOptions,
    ...link,
    statistics: {
      about:
        'Reports statistics to other processes of this user (`nd stat`, `nd top`): counters, queue pairs, connections, and sizes of ' +
        'registrations, but never keys, memory addresses or memory contents. Costs nothing until it is used.',
      default: true,
    },
    receiveBufferBytes,
    faults: { about: 'Faults injected into the link, for tests.', group: faultOptions, cpp: 'LinkOptions' },
    pkeys: {
      about:
        'P_Key tables of the ports: `[0xffff, 0x8001]` for all ports, or `{ eth0: [0x8001] }` by interface, where other interfaces have only ' +
        "the default partition. Connections use the first entry unless a queue pair's `pkeyIndex` or a path record selects another. `setPartitions` " +
        'replaces the tables while the kernel is running.',
      checked: 'number[] | Record<string, number[]>',
      default: [DEFAULT_PKEY],
    },
    hca: {
      about:
        'Selects the HCAs of the soft kernel, or on Windows a NetworkDirect provider. `auto`: RDMA devices, and the software HCA for all ' +
        'addresses that no RDMA device has; `soft`: the software HCA only; `rdma`: RDMA devices only; or the name of an RDMA device, ' +
        'such as `mlx5_0`. Opening fails if there is no such HCA. Options for packets, timers, faults and captures apply to the software ' +
        'HCA only. On Windows the option selects for ND v2: `auto`: the NetworkDirect provider that lists the address, otherwise the ' +
        "kernel; `rdma`: NetworkDirect providers only; or the name of a provider's DLL, such as `mlx5nd.dll`. ND v1 and WinVerbs support " +
        'only `auto` and `soft` there.',
      checked: 'string',
      default: 'auto',
    },
    kernel: {
      about:
        'The kernel that this thread uses: the driver of Windows or the soft kernel. `driver`: the WinVerbs driver of Windows; `soft`: the soft kernel with its software HCA; `auto`: the ' +
        'driver if one is installed, otherwise the soft kernel. The first open of a thread determines it for all later ones.',
      checked: "'auto' | 'driver' | 'soft'",
      default: 'auto',
    },
    startTimeoutMs: {
      about: "Maximum wait for the soft kernel's thread when a device file is opened, in milliseconds.",
      range: [100, 600_000],
      default: 10_000,
    },
  },
};
