/** The structures that describe a controller and its namespaces, and the log of a discovery subsystem. */
import { Layout, raw, text, u8, u16, u32, u64 } from './little-endian.js';

/** CNS values of Identify (Base §5.17.1). */
export const Identify = {
  NAMESPACE: 0x00,
  CONTROLLER: 0x01,
  ACTIVE_NAMESPACES: 0x02,
  NAMESPACE_DESCRIPTORS: 0x03,
} as const;

/** Length of every Identify structure, in bytes. */
export const IDENTIFY_BYTES = 4096;

/** Identify Controller (Base §5.17.2.1). */
export const IdentifyController = new Layout('Identify Controller', IDENTIFY_BYTES, {
  vendor: u16(0),
  serial: text(4, 20, ' '),
  model: text(24, 40, ' '),
  firmware: text(64, 8, ' '),
  /** Bit 1: the subsystem may have several controllers. */
  multipath: u8(76),
  /** Maximum bytes of a transfer: 2^n pages; 0: no limit. */
  maxTransfer: u8(77),
  controllerId: u16(78),
  version: u32(80),
  attributes: u32(96),
  /** See {@link ControllerType}. */
  controllerType: u8(111),
  /** 0's based. */
  abortLimit: u8(258),
  /** 0's based. */
  asyncEventLimit: u8(259),
  firmwareUpdates: u8(260),
  logAttributes: u8(261),
  warningTemperature: u16(266),
  criticalTemperature: u16(268),
  /** Units of 100 ms. */
  keepAliveUnit: u16(320),
  submissionEntrySize: u8(512),
  completionEntrySize: u8(513),
  maxCommands: u16(514),
  namespaces: u32(516),
  optionalCommands: u16(520),
  writeCache: u8(525),
  sglSupport: u32(536),
  subsystem: text(768, 256),
  /** Size of a command capsule with its data, in units of 16 bytes. */
  ioCommandCapsule: u32(1792),
  ioResponseCapsule: u32(1796),
  /** In units of 16 bytes. */
  inCapsuleOffset: u16(1800),
  /** Maximum descriptors of a command's SGL. */
  sglDescriptors: u8(1803),
});

export const ControllerType = { IO: 1, DISCOVERY: 2 } as const;
/** Bits of fields of {@link IdentifyController}. */
export const MULTIPLE_CONTROLLERS = 0x02;
/** Any command keeps the controller alive (TBKAS). */
export const TRAFFIC_KEEPS_ALIVE = 0x40;
/** Get Log Page accepts an offset. */
export const LOG_OFFSETS = 0x04;
export const HAS_WRITE_ZEROES = 0x08;
export const HAS_WRITE_CACHE = 0x01;
/** SGLs, keyed SGLs, and offsets of data in the capsule. */
export const SGL_FEATURES = 0x0010_0005;
export const FIXED_FIRMWARE = 0x03;

/** Identify Namespace, NVM command set. */
export const IdentifyNamespace = new Layout('Identify Namespace', IDENTIFY_BYTES, {
  /** Size in blocks. */
  size: u64(0),
  capacity: u64(8),
  utilization: u64(16),
  formats: u8(25),
  /** Index of the current format, in the lower four bits. */
  format: u8(26),
  /** Bit 0: several controllers may attach the namespace. */
  sharing: u8(30),
  guid: raw(104, 16),
});

/** The formats of {@link IdentifyNamespace}. */
export const FORMATS_AT = 128;
export const BlockFormat = new Layout('LBA format', 4, {
  metadata: u16(0),
  /** A block has 2^n bytes. */
  blockBits: u8(2),
});

/** An entry of the namespace identification descriptors. */
export const NamespaceDescriptor = new Layout('namespace descriptor', 20, {
  type: u8(0),
  length: u8(1),
  guid: raw(4, 16),
});
export const GUID_DESCRIPTOR = 2;

/** Header of the discovery log (Base §5.16.1.23); entries follow. */
export const DiscoveryHead = new Layout('discovery log', 1024, {
  generation: u64(0),
  entries: u64(8),
  recordFormat: u16(16),
});

/** An entry of the discovery log with the transport-specific part of RDMA. */
export const DiscoveryEntry = new Layout('discovery log entry', 1024, {
  transport: u8(0),
  addressFamily: u8(1),
  subsystemType: u8(2),
  requirements: u8(3),
  portId: u16(4),
  controllerId: u16(6),
  adminQueueSize: u16(8),
  service: text(32, 32, ' '),
  subsystem: text(256, 256),
  address: text(512, 256, ' '),
  queuePairType: u8(768),
  providerType: u8(769),
  connectionManagement: u8(770),
});

export const Transport = { RDMA: 1 } as const;
export const AddressFamily = { IPV4: 1, IPV6: 2 } as const;
export const SubsystemType = { DISCOVERY: 1, NVM: 2, THIS_DISCOVERY: 3 } as const;
/** The RDMA part: reliable connected, RoCEv2, RDMA CM. */
export const RdmaPart = { CONNECTED: 1, ROCE_V2: 4, RDMA_CM: 1 } as const;
