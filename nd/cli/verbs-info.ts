/** `nd verbs-info`: devices, ports, GIDs, P_Keys, limits and counters, like `ibv_devinfo -v` and `rdma statistic`. */
import { Command } from 'commander';
import {
  addressOfGid,
  type Counters,
  type DeviceInterface,
  readCounters,
  readInterfaces,
} from '../../kernel-bridge/index.js';
import {
  AtomicCapability,
  type IWVDevice,
  type IWVProvider,
  openProvider,
  PortState,
  PortTransport,
  Status,
  type WvDeviceAttributes,
  WvError,
} from '../../winverbs/index.js';
import { packageVersion } from './command-line.js';
import { collectReport, formatReport } from './verbs-report.js';

/** The state of a port's link (IBA 1 §14.2.5.6, PortPhysicalState). */
const PhysicalState = { SLEEP: 1, POLLING: 2, DISABLED: 3, TRAINING: 4, LINK_UP: 5, RECOVERY: 6 } as const;

/** An entry of a GID table. */
export interface GidInfo {
  readonly index: number;
  /** The GID as 32 hexadecimal digits in groups of four. */
  readonly gid: string;
  /** The GID as an IP address. */
  readonly address: string;
}

/** A port. Sizes are in bytes. */
export interface PortInfo {
  readonly port: number;
  readonly state: string;
  readonly physicalState: string;
  readonly transport: string;
  readonly maxMtu: number;
  readonly activeMtu: number;
  readonly maxMessageSize: number;
  readonly badPkeyCounter: number;
  readonly qkeyViolationCounter: number;
  readonly gids: readonly GidInfo[];
  /** Such as `0xffff`; the most significant bit means full membership. */
  readonly pkeys: readonly string[];
}

/** A device. 64-bit values are strings, for JSON. */
export interface DeviceInfo {
  /** The network interface; empty if the kernel does not report it. */
  readonly name: string;
  /** The HCA: `software`, or the RDMA device of the OS with its driver, such as `mlx5_0 (mlx5_core)`. */
  readonly hca: string;
  readonly guid: string;
  readonly systemImageGuid: string;
  readonly firmware: string;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hwVersion: number;
  readonly atomics: string;
  /** The limits of `ibv_devinfo -v`, with the names in `WvDeviceAttributes`. */
  readonly limits: Readonly<Record<string, number | string>>;
  readonly ports: readonly PortInfo[];
}

/** The output of `nd verbs-info --json`. */
export interface VerbsInfo {
  readonly devices: readonly DeviceInfo[];
  readonly counters?: Counters;
}

/** Describes all devices of this host, or the one with the interface name or GUID `wanted`. */
export function collectVerbsInfo(wanted?: string, withCounters = false): VerbsInfo {
  using provider = openProvider();
  const interfaces = readInterfaces();
  const all = provider.queryDeviceList();
  const guids = wanted === undefined ? all : all.filter((guid) => isNamed(guid, wanted, interfaces));
  if (wanted !== undefined && guids.length === 0) {
    const known = all.map((guid) => nameOf(guid, interfaces) || guidText(guid)).join(', ');
    throw new WvError(
      Status.NO_SUCH_DEVICE,
      `No device has the name or GUID '${wanted}'. Available: ${known}.`,
    );
  }
  const devices = guids.flatMap((guid) => {
    return (
      describe(
        provider,
        guid,
        interfaces.find((one) => one.guid === guid),
      ) ?? []
    );
  });
  return withCounters ? { devices, counters: readCounters() } : { devices };
}

function nameOf(guid: bigint, interfaces: readonly DeviceInterface[]): string {
  return interfaces.find((one) => one.guid === guid)?.name ?? '';
}

function isNamed(guid: bigint, wanted: string, interfaces: readonly DeviceInterface[]): boolean {
  const digits = wanted.toLowerCase().replace(/^0x/, '').replaceAll(':', '');
  return nameOf(guid, interfaces) === wanted || guidText(guid).replaceAll(':', '') === digits;
}

/** Returns undefined if the device was removed since it was listed. */
function describe(
  provider: IWVProvider,
  guid: bigint,
  at: DeviceInterface | undefined,
): DeviceInfo | undefined {
  try {
    using device = provider.openDevice(guid);
    const attributes = device.query();
    return {
      name: at?.name ?? '',
      hca: hcaText(at),
      guid: guidText(attributes.nodeGuid),
      systemImageGuid: guidText(attributes.systemImageGuid),
      firmware: at?.hca?.firmware ?? attributes.fwVersion.toString(),
      vendorId: attributes.vendorId,
      vendorPartId: attributes.vendorPartId,
      hwVersion: attributes.hwVersion,
      atomics: term(AtomicCapability, attributes.atomicCapability),
      limits: limitsOf(attributes),
      ports: Array.from({ length: attributes.physPortCount }, (_, n) => describePort(device, n + 1)),
    };
  } catch (error) {
    const gone: readonly number[] = [Status.NO_SUCH_DEVICE, Status.DEVICE_REMOVED, Status.FILE_FORCED_CLOSED];
    if (error instanceof WvError && gone.includes(error.status)) return undefined;
    throw error;
  }
}

/** Describes the HCA of a device. */
export function hcaText(at: DeviceInterface | undefined): string {
  if (!at?.hca) return 'software';
  const { device, driver } = at.hca;
  return driver === '' ? device : `${device} (${driver})`;
}

function limitsOf(attributes: WvDeviceAttributes): Record<string, number | string> {
  const limits = Object.entries(attributes).filter(
    ([key]) => key.startsWith('max') || key === 'localAckDelay',
  );
  return Object.fromEntries(
    limits.map(([key, value]: [string, number | bigint]) => [
      key,
      typeof value === 'bigint' ? value.toString() : value,
    ]),
  );
}

function describePort(device: IWVDevice, port: number): PortInfo {
  const attributes = device.queryPort(port);
  const { maxMtu, activeMtu, maxMessageSize, badPkeyCounter, qkeyViolationCounter } = attributes;
  return {
    port,
    state: term(PortState, attributes.state),
    physicalState: term(PhysicalState, attributes.physicalState),
    transport:
      attributes.transport === PortTransport.RDMAOE ? 'RoCE v2' : term(PortTransport, attributes.transport),
    maxMtu,
    activeMtu,
    maxMessageSize,
    badPkeyCounter,
    qkeyViolationCounter,
    gids: entries(attributes.gidTableLength, (index) => gidInfo(index, device.queryGid(port, index))),
    pkeys: entries(attributes.pkeyTableLength, (index) => hex(device.queryPkey(port, index), 4)),
  };
}

/** The entries of a table that may shrink meanwhile. */
function entries<T>(length: number, read: (index: number) => T): T[] {
  const found: T[] = [];
  for (let index = 0; index < length; index += 1) {
    try {
      found.push(read(index));
    } catch (error) {
      if (error instanceof WvError && error.status === Status.INVALID_PARAMETER_2) break;
      throw error;
    }
  }
  return found;
}

function gidInfo(index: number, gid: Uint8Array): GidInfo {
  return { index, gid: grouped(Buffer.from(gid).toString('hex')), address: addressOfGid(gid) };
}

function guidText(guid: bigint): string {
  return grouped(guid.toString(16).padStart(16, '0'));
}

function grouped(digits: string): string {
  return digits.replace(/(.{4})(?=.)/g, '$1:');
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}

/** The name of a value in a table of constants. */
function term(table: Readonly<Record<string, number>>, value: number): string {
  return Object.keys(table).find((name) => table[name] === value) ?? String(value);
}

/** The brief report: one line for each device and one for each port. */
export function formatBrief({ devices }: VerbsInfo): string {
  const lines: string[] = [];
  for (const { name, guid, hca, ports } of devices) {
    lines.push(`${name || guid}  ${hca} HCA  GUID ${guid}`);
    for (const { port, state, transport, activeMtu, gids } of ports) {
      const addresses = [...new Set(gids.map(({ address }) => address))].join(', ');
      lines.push(`  port ${port}  ${state}  ${transport}  MTU ${activeMtu}  ${addresses}`);
    }
  }
  return lines.join('\n');
}

/** Formats the report as text. */
export function formatVerbsInfo({ devices, counters }: VerbsInfo): string {
  const lines: string[] = [];
  const line = (depth: number, key: string, value: string | number): void => {
    lines.push(`${'  '.repeat(depth)}${`${key}:`.padEnd(36 - 2 * depth)}${value}`);
  };
  for (const device of devices) {
    const { name, limits, ports, ...rest } = device;
    lines.push(`device ${name || device.guid}`);
    for (const [key, value] of Object.entries(rest)) line(1, key, value);
    for (const [key, value] of Object.entries(limits)) line(1, key, value);
    for (const { port, gids, pkeys, ...values } of ports) {
      lines.push(`  port ${port}`);
      for (const [key, value] of Object.entries(values)) line(2, key, value);
      for (const { index, gid, address } of gids) line(2, `GID[${index}]`, `${gid}  ${address}`);
      pkeys.forEach((pkey, index) => {
        line(2, `P_Key[${index}]`, pkey);
      });
    }
    lines.push('');
  }
  for (const [group, values] of Object.entries(counters ?? {})) {
    lines.push(`counters ${group}`);
    for (const [key, value] of Object.entries(values as Readonly<Record<string, number>>))
      line(1, key, value);
    lines.push('');
  }
  return lines.join('\n').trimEnd();
}

interface VerbsInfoOptions {
  readonly device?: string;
  readonly counters?: boolean;
  readonly report?: boolean;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** The command for `nd`; `fail` prints an error. */
export function verbsInfoCommand(fail: (error: unknown) => void): Command {
  return new Command('verbs-info')
    .description('show the devices, ports, GIDs, P_Keys and limits of this host')
    .option('--device <name>', 'only the device with this interface name or GUID')
    .option('-v, --verbose', 'also the limits, GIDs and P_Keys')
    .option('--counters', 'also the counters of the HCA, of connection management and of the kernel')
    .option(
      '--report',
      'print the data for a bug report about an RDMA device, without addresses of this host',
    )
    .option('--json', 'print JSON')
    .action((options: VerbsInfoOptions) => {
      try {
        if (options.report === true) {
          const report = collectReport(packageVersion(), () => collectVerbsInfo(options.device));
          process.stdout.write(`${options.json === true ? JSON.stringify(report) : formatReport(report)}\n`);
          return;
        }
        const info = collectVerbsInfo(options.device, options.counters);
        const long = options.verbose === true || options.counters === true;
        const text =
          options.json === true ? JSON.stringify(info) : (long ? formatVerbsInfo : formatBrief)(info);
        process.stdout.write(`${text}\n`);
      } catch (error) {
        fail(error);
      }
    });
}
