/**
 * `nd verbs-info --report`: data for a bug report about an RDMA device. It is read from files of the OS, so that it also shows why a device
 * cannot be used. It contains no host or user names, no serial numbers and no complete addresses. Of a GID it contains only the type and
 * the network prefix, and of a GUID only the vendor part.
 */
import { accessSync, constants, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { release } from 'node:os';
import { basename, join } from 'node:path';
import { addressOfGid } from '../../kernel-bridge/index.js';
import { type ReportedProvider, reportProviders } from './provider-report.js';
import type { VerbsInfo } from './verbs-info.js';

/** An RDMA device as the OS describes it. Fields that the OS does not report are empty. */
export interface SystemDevice {
  readonly name: string;
  readonly driver: string;
  readonly firmware: string;
  readonly board: string;
  readonly model: string;
  /** PCI ids of vendor and device, such as `15b3:1017`. */
  readonly pci: string;
  readonly nodeType: string;
  /** The upper 24 bits, which identify the vendor. */
  readonly guid: string;
  readonly ports: readonly SystemPort[];
}

/** A port of a {@link SystemDevice}. */
export interface SystemPort {
  readonly port: number;
  readonly state: string;
  readonly physicalState: string;
  readonly rate: string;
  readonly linkLayer: string;
  /** Such as `3: RoCE v2, 192.0.x.x, eth0`. */
  readonly gids: readonly string[];
}

/** The output of `nd verbs-info --report --json`. */
export interface VerbsReport {
  readonly versions: Readonly<Record<'package' | 'node' | 'kernel' | 'libibverbs' | 'librdmacm', string>>;
  readonly devices: readonly SystemDevice[];
  /** Loaded kernel modules. */
  readonly modules: readonly string[];
  /** Device files and the access of this user: `read and write`, or `no access`. */
  readonly files: Readonly<Record<string, string>>;
  /** Bytes that this process may lock, or `unlimited`. */
  readonly lockedMemory: string;
  /** The address families whose UDP port 4791 (RoCEv2) is open in this network namespace, by any process; empty: none. */
  readonly udpPort4791: readonly string[];
  /** Whether devices are `shared` by all network namespaces or `exclusive` to one. */
  readonly namespaces: string;
  /** Detected problems and their cures. */
  readonly advice: readonly string[];
  /** The devices as opened by this package, without GUIDs and addresses. */
  readonly opened: readonly object[];
  /** NetworkDirect providers of vendors (Windows). */
  readonly providers: readonly ReportedProvider[];
  /** Why the devices could not be opened. */
  readonly failure?: string;
}

/** Locations of the OS's files, which tests replace. */
export interface SystemRoots {
  readonly sys: string;
  readonly dev: string;
  readonly proc: string;
  /** Folders with libraries. */
  readonly libraries: readonly string[];
}

const systemRoots: SystemRoots = {
  sys: '/sys',
  dev: '/dev/infiniband',
  proc: '/proc',
  libraries: [
    ...[
      '/lib/x86_64-linux-gnu',
      '/usr/lib/x86_64-linux-gnu',
      '/lib/aarch64-linux-gnu',
      '/usr/lib/aarch64-linux-gnu',
    ],
    ...['/lib64', '/usr/lib64', '/usr/lib', '/usr/local/lib'],
  ],
};
const moduleNames = ['ib_core', 'ib_uverbs', 'rdma_cm', 'rdma_ucm'];
/** Memory that a program with one connection and a few buffers locks. */
const LITTLE_MEMORY = 64 << 20;

/** The contents of a file without trailing newline; empty if it cannot be read. */
function text(...path: string[]): string {
  try {
    return readFileSync(join(...path), 'latin1').trim();
  } catch {
    return '';
  }
}

function list(...path: string[]): string[] {
  try {
    return readdirSync(join(...path)).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  } catch {
    return [];
  }
}

function linkName(...path: string[]): string {
  try {
    return basename(readlinkSync(join(...path)));
  } catch {
    return '';
  }
}

/** Converts `4: ACTIVE` to `ACTIVE`. */
const withoutNumber = (value: string): string => value.replace(/^\d+:\s*/, '');

/** The address of a GID without the part that identifies a host. */
function networkOf(gid: string): string {
  const bytes = Buffer.from(gid.replaceAll(':', ''), 'hex');
  const address = addressOfGid(bytes);
  if (address.includes('.')) return address.replace(/^(\d+\.\d+)\..*$/, '$1.x.x');
  return `${gid.slice(0, 19)}:x`;
}

function gidsOf(port: string): string[] {
  return list(port, 'gids').flatMap((index) => {
    const gid = text(port, 'gids', index);
    if (!/^[0-9a-f]{4}(:[0-9a-f]{4}){7}$/.test(gid) || /^[0:]+$/.test(gid)) return [];
    const type = text(port, 'gid_attrs/types', index);
    const device = text(port, 'gid_attrs/ndevs', index);
    return `${index}: ${[type, networkOf(gid), device].filter((part) => part !== '').join(', ')}`;
  });
}

function portOf(folder: string, port: string): SystemPort {
  const at = join(folder, 'ports', port);
  return {
    port: Number(port),
    state: withoutNumber(text(at, 'state')),
    physicalState: withoutNumber(text(at, 'phys_state')),
    rate: text(at, 'rate'),
    linkLayer: text(at, 'link_layer'),
    gids: gidsOf(at),
  };
}

function deviceOf(folder: string): SystemDevice {
  const pci = ['vendor', 'device'].map((id) => text(folder, 'device', id).replace(/^0x/, ''));
  const guid = text(folder, 'node_guid');
  return {
    name: basename(folder),
    driver: linkName(folder, 'device/driver'),
    firmware: text(folder, 'fw_ver'),
    board: text(folder, 'board_id'),
    model: text(folder, 'hca_type'),
    pci: pci.includes('') ? '' : pci.join(':'),
    nodeType: withoutNumber(text(folder, 'node_type')),
    guid: guid === '' ? '' : `${guid.slice(0, 7)}xx:xxxx:xxxx`,
    ports: list(folder, 'ports').map((port) => portOf(folder, port)),
  };
}

/** The version in the file name of a library: `libibverbs.so.1.14.44.0` is rdma-core 44.0. */
function libraryVersion(roots: SystemRoots, name: string): string {
  for (const folder of roots.libraries) {
    try {
      return basename(realpathSync(join(folder, name)));
    } catch {
      // The library is in another folder.
    }
  }
  return 'not installed';
}

function filesOf(dev: string): Record<string, string> {
  const files = list(dev).filter((name) => /^(uverbs\d+|rdma_cm)$/.test(name));
  return Object.fromEntries(
    files.map((name) => {
      try {
        accessSync(join(dev, name), constants.R_OK | constants.W_OK);
        return [`/dev/infiniband/${name}`, 'read and write'];
      } catch {
        return [`/dev/infiniband/${name}`, 'no access'];
      }
    }),
  );
}

function lockedMemory(proc: string): string {
  const line = text(proc, 'self/limits')
    .split('\n')
    .find((one) => one.startsWith('Max locked memory'));
  return line?.slice(26).trim().split(/\s+/)[0] ?? 'unknown';
}

function openFamilies(proc: string): string[] {
  const isOpen = (table: string): boolean => /^\s*\d+: [0-9A-F]+:12B7 /m.test(text(proc, 'self/net', table));
  return Object.entries({ udp: 'IPv4', udp6: 'IPv6' }).flatMap(([table, family]) =>
    isOpen(table) ? [family] : [],
  );
}

/** Detected problems and cures, as sentences. */
function adviceOf(report: Omit<VerbsReport, 'advice' | 'opened' | 'providers' | 'failure'>): string[] {
  const { devices, files, versions, modules } = report;
  const missing = ['libibverbs', 'librdmacm'] as const;
  const advice: string[] = [];
  const advise = (condition: boolean, sentence: string): void => void (condition && advice.push(sentence));
  advise(
    devices.length === 0,
    'No RDMA device was found: /sys/class/infiniband is empty. In a container, check with `rdma system` on the host whether devices are exclusive to network namespaces; if so, `rdma dev set NAME netns PID` moves one.',
  );
  for (const name of missing) {
    const debian = `${name}1`;
    advise(
      versions[name] === 'not installed',
      `${name} was not found in the usual library folders. On Debian and Ubuntu, install ${debian}, and ibverbs-providers for the providers.`,
    );
  }
  for (const name of devices.length > 0 ? ['ib_uverbs', 'rdma_ucm'] : []) {
    advise(!modules.includes(name), `The kernel module ${name} is not loaded. Run modprobe ${name}.`);
  }
  advise(
    devices.length > 0 && files['/dev/infiniband/rdma_cm'] === undefined,
    '/dev/infiniband/rdma_cm does not exist. For a container, use `docker run --device=/dev/infiniband`.',
  );
  for (const [file, may] of Object.entries(files)) {
    advise(
      may === 'no access',
      `This user does not have read and write access to ${file}. A udev rule (MODE="0666", or a group) can grant it.`,
    );
  }
  advise(
    Number(report.lockedMemory) < LITTLE_MEMORY,
    `This process may lock only ${report.lockedMemory} bytes (RLIMIT_MEMLOCK), and registered memory is locked. Raise the limit with ulimit -l, LimitMEMLOCK= of systemd, or docker run --ulimit memlock=-1.`,
  );
  return advice;
}

/** Removes identifiers of the host from the devices as opened by this package. */
function anonymous({ devices }: VerbsInfo): object[] {
  return devices
    .filter(({ hca }) => hca !== 'software')
    .map(({ guid, systemImageGuid, ports, ...rest }) => ({
      ...rest,
      ports: ports.map(({ gids, ...port }) => ({ ...port, gids: gids.length })),
    }));
}

/** Collects the report. `open` describes the devices through this package; it may throw. */
export function collectReport(
  packageVersion: string,
  open: () => VerbsInfo,
  roots: SystemRoots = systemRoots,
): VerbsReport {
  const infiniband = join(roots.sys, 'class/infiniband');
  const mode = text(roots.sys, 'module/ib_core/parameters/netns_mode');
  const facts = {
    versions: {
      package: packageVersion,
      node: process.version,
      kernel: release(),
      libibverbs: libraryVersion(roots, 'libibverbs.so.1'),
      librdmacm: libraryVersion(roots, 'librdmacm.so.1'),
    },
    devices: list(infiniband).map((name) => deviceOf(join(infiniband, name))),
    modules: moduleNames.filter((name) => list(roots.sys, 'module', name).length > 0),
    files: filesOf(roots.dev),
    lockedMemory: lockedMemory(roots.proc),
    udpPort4791: openFamilies(roots.proc),
    namespaces: mode === 'Y' ? 'shared' : mode === 'N' ? 'exclusive' : 'unknown',
  };
  // The problems and cures are those of Linux.
  const advice = process.platform === 'win32' ? [] : adviceOf(facts);
  const report = { ...facts, advice, providers: reportProviders() };
  try {
    return { ...report, opened: anonymous(open()) };
  } catch (error) {
    return { ...report, opened: [], failure: error instanceof Error ? error.message : String(error) };
  }
}

/** Formats the report as nested text, omitting empty values. */
export function formatReport(report: VerbsReport): string {
  const lines: string[] = [];
  const put = (key: string, value: unknown, depth: number): void => {
    const indent = '  '.repeat(depth);
    if (value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0))
      return;
    if (typeof value !== 'object' || value === null) {
      lines.push(`${indent}${key}: ${String(value)}`);
      return;
    }
    lines.push(`${indent}${key}:`);
    for (const [name, inner] of Object.entries(value)) {
      if (Array.isArray(value) && typeof inner !== 'object') lines.push(`${indent}  ${String(inner)}`);
      else put(Array.isArray(value) ? `${Number(name) + 1}` : name, inner, depth + 1);
    }
  };
  for (const [key, value] of Object.entries(report)) put(key, value, 0);
  return lines.join('\n');
}
