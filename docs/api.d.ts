// networkdirect
export {
  AllocateOptions,
  GetResultOptions,
  IND2Adapter,
  IND2CompletionQueue,
  IND2Connector,
  IND2Listener,
  IND2MemoryRegion,
  IND2MemoryWindow,
  IND2Overlapped,
  IND2Provider,
  IND2QueuePair,
  IND2SharedReceiveQueue,
  INDAdapter,
  INDCompletionQueue,
  INDConnector,
  INDEndpoint,
  INDListen,
  INDMemoryWindow,
  INDOverlapped,
  INDProvider,
  LocalNameClaim,
  ND_VERSION_1,
  ND_VERSION_2,
  Nd2AcceptingOptions,
  Nd2AdapterFlag,
  Nd2AdapterInfo,
  Nd2Affinity,
  Nd2ConnectOptions,
  Nd2Connected,
  Nd2ConnectingOptions,
  Nd2Direct,
  Nd2DirectResult,
  Nd2InitiatorOptions,
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2QueuePairOptions,
  Nd2ReadLimits,
  Nd2RemoteMemory,
  Nd2RequestType,
  Nd2Result,
  Nd2Sge,
  Nd2SharedReceiveQueueOptions,
  Nd2SrqQueuePairOptions,
  NdAcceptingOptions,
  NdAdapterInfo,
  NdAdapterOptions,
  NdAddress,
  NdCompletedRequest,
  NdConnectOptions,
  NdConnectingOptions,
  NdConnectionData,
  NdEndpointOptions,
  NdError,
  NdInterfaces,
  NdListenOptions,
  NdMemoryHandle,
  NdMwDescriptor,
  NdNotifyType,
  NdOpFlag,
  NdOverlappedFile,
  NdOverlappedObject,
  NdProviderEntry,
  NdQueryFlag,
  NdResult,
  NdSge,
  NdUnknown,
  NetworkDirectOptions,
  Overlapped,
  SocketAddress,
  Status,
  StatusError,
  WaitOptions,
  acceptEndpoint,
  acceptQueuePair,
  allocate,
  claimLocalName,
  connectEndpoint,
  connectQueuePair,
  firstResult,
  ndCheckAddress,
  ndCleanup,
  ndFlushProviders,
  ndNotifyAddressListChange,
  ndOpenAdapter,
  ndOpenV1Adapter,
  ndProviderOf,
  ndQueryAddressList,
  ndResolveAddress,
  ndStartup,
  nextResult,
  openNetworkDirect,
  openNetworkDirect2,
  portsOfLocalName,
  readNdProviders,
  statusName,
  statusText,
  wireView,
};

// networkdirect/net
export {
  AbortOptions,
  AllocateOptions,
  BroadcastOptions,
  BroadcastResult,
  Channel,
  ChannelOptions,
  Codec,
  ConnectChannelOptions,
  ConnectChannelParameters,
  ConnectListener,
  ConnectOptions,
  DroppedAddresses,
  ExposeOptions,
  ExposedMemory,
  IncomingRequest,
  LentMemory,
  ListenOptions,
  MessageBytes,
  NetError,
  NodeServerOptions,
  NodeSocketOptions,
  OnReadOptions,
  OpenSharedMapOptions,
  RemoteMemory,
  RemoteOptions,
  RequestHandler,
  Server,
  ServerOptions,
  SetOptions,
  SharedMap,
  SharedMapOptions,
  SharedMapView,
  Socket,
  SocketAddress,
  SocketOptions,
  allocate,
  connect,
  connectChannel,
  createChannelServer,
  createConnection,
  createServer,
  createSharedMap,
  openSharedMap,
  setMaxBufferedBytes,
};

// networkdirect/winverbs
export {
  AddressFamily,
  AllocateOptions,
  ApmState,
  AtomicCapability,
  Capacity,
  CqNotifyType,
  DEFAULT_PKEY,
  DeviceType,
  EpOption,
  EpType,
  GRH_BYTES,
  GetResultOptions,
  IBAT_VERSION,
  IWVAddressHandle,
  IWVCompletionQueue,
  IWVConnectEndpoint,
  IWVConnectQueuePair,
  IWVDatagramEndpoint,
  IWVDatagramQueuePair,
  IWVDevice,
  IWVEndpoint,
  IWVFastRegion,
  IWVMemoryWindow,
  IWVProtectionDomain,
  IWVProvider,
  IWVQueuePair,
  IWVSharedReceiveQueue,
  IpProtocol,
  KernelOptionsInput,
  LocalNameClaim,
  MULTICAST_QPN,
  MemoryRegion,
  Overlapped,
  OverlappedSource,
  PortState,
  PortTransport,
  ProviderDoors,
  QpAttr,
  QpFlag,
  QpState,
  QpType,
  RemoteMemory,
  RemoteMemoryRef,
  RnrRetry,
  SOFT_USER_LIBRARY,
  SocketAddress,
  Status,
  StatusError,
  StatusName,
  UmvBuffer,
  UserVerbs,
  UserVerbsMaker,
  UvpAddressVector,
  UvpBindRequest,
  UvpCompletion,
  UvpHandle,
  UvpMemory,
  UvpPin,
  UvpQpCreate,
  UvpQpState,
  UvpSendRequest,
  UvpSge,
  UvpSrqAttributes,
  WVAddressHandle,
  WVCompletionQueue,
  WVConnectEndpoint,
  WVConnectQueuePair,
  WVDatagramEndpoint,
  WVDatagramQueuePair,
  WVDevice,
  WVEndpoint,
  WVFastRegion,
  WVMemoryWindow,
  WVProtectionDomain,
  WVProvider,
  WVQueuePair,
  WVSharedReceiveQueue,
  WaitOptions,
  WcStatus,
  WvAccess,
  WvAddressVector,
  WvCapability,
  WvCompletion,
  WvConnectAttributes,
  WvConnectParam,
  WvCqNotifyType,
  WvDatagram,
  WvDatagramAttributes,
  WvDatagramParam,
  WvDatagramStart,
  WvDeviceAddress,
  WvDeviceAttributes,
  WvDirect,
  WvDirectResult,
  WvError,
  WvEvent,
  WvGrh,
  WvInterfaces,
  WvMemoryRegion,
  WvObject,
  WvOpcode,
  WvOverlapped,
  WvOverlappedObject,
  WvPath,
  WvPathRecord,
  WvPortAttributes,
  WvQpAttributes,
  WvQpCreate,
  WvRemoteMemory,
  WvSend,
  WvSendDatagram,
  WvSendRequest,
  WvSge,
  WvSrqAttributes,
  WvSrqEvent,
  WvUnknown,
  WvWc,
  addressOf,
  addressOfGid,
  allocate,
  asAddress,
  checkedSignal,
  claimLocalName,
  firstCompletion,
  firstTaken,
  gidOf,
  gidOfAddress,
  isMulticastGid,
  mandatoryUserVerbs,
  nextCompletion,
  openProvider,
  parseGrh,
  parseSocketAddress,
  portsOfLocalName,
  registerUserVerbs,
  replyAddressVector,
  requireUserVerbs,
  scopeIdOfAddress,
  socketAddress,
  statusHex,
  statusName,
  statusText,
  widen,
};

// networkdirect/kernel-bridge
export {
  AddressFamily,
  AllocateOptions,
  AnyField,
  AnyStruct,
  ApmState,
  AtomicCapability,
  AvProviderOut,
  BytesType,
  COUNTERS_DEVICE,
  CaProviderOut,
  Capacity,
  ChangeCount,
  CmOptions,
  Codes,
  ConnectionStatistics,
  Counters,
  CountersCode,
  CqNotifyType,
  CqProviderIn,
  CqProviderOut,
  DEFAULT_PKEY,
  DRIVERS_DEVICE,
  DeviceFault,
  DeviceFile,
  DeviceInterface,
  DeviceStatistics,
  DeviceType,
  DriversCode,
  EpOption,
  EpType,
  FAULTS_DEVICE,
  FaultOptions,
  FaultsCode,
  FieldInfo,
  FieldKey,
  FieldType,
  Fields,
  FieldsInput,
  FieldsValue,
  GetResultOptions,
  HcaFileCode,
  HcaFileName,
  IBAT_VERSION,
  IbCaAttr,
  IbCmaHeader,
  IbIoCaModify,
  IbIoPortEvent,
  IbIoPortModify,
  IbPathRecord,
  IbPortAttr,
  IbatCode,
  IbatIpToPortIn,
  IbatName,
  IbatPathIn,
  IbatPortRecord,
  Input,
  IoctlCode,
  IoctlName,
  IoctlRow,
  IoctlTail,
  IpProtocol,
  KernelOptions,
  KernelOptionsInput,
  KernelStatistics,
  Layouts,
  List,
  LoadDriverOptions,
  LoadedDriver,
  LocalNameClaim,
  MadeCode,
  MemoryStatistics,
  ModifyCaFlag,
  ModifyPortFlag,
  MwProviderOut,
  NamedIoctlRow,
  ObjectKind,
  ObservedKernel,
  OptionsError,
  OptionsIssue,
  OptionsResult,
  OptionsSchema,
  Overlapped,
  OverlappedSource,
  PROVIDER_ABI,
  PdProviderOut,
  PkeyTables,
  PortCapability,
  PortState,
  PortTransport,
  QpAttr,
  QpFlag,
  QpProviderIn,
  QpProviderOut,
  QpState,
  QpStateOut,
  QpType,
  QueuePairStatistics,
  RcOptions,
  ReadProcessesOptions,
  Refusals,
  Refuse,
  ReservedType,
  RnrRetry,
  SETTINGS_DEVICE,
  SOCKADDR_BYTES,
  STATISTICS_FORM,
  STATISTICS_MOST,
  SettingsCode,
  SocketAddress,
  SrqProviderIn,
  SrqProviderOut,
  Status,
  StatusError,
  StatusName,
  Struct,
  StructCode,
  Uint64Type,
  UintType,
  VERB_INFO,
  Value,
  WcStatus,
  WvAccess,
  WvCapability,
  WvDatagram,
  WvEpIds,
  WvEvent,
  WvGidList,
  WvGuidEntries,
  WvIoAhCreate,
  WvIoAv,
  WvIoConnectParam,
  WvIoDatagramParam,
  WvIoDeviceAddress,
  WvIoDeviceAttributes,
  WvIoDeviceOpen,
  WvIoDevicePortQuery,
  WvIoEpAccept,
  WvIoEpAttributes,
  WvIoEpBind,
  WvIoEpConnect,
  WvIoEpCreate,
  WvIoEpDatagramAccept,
  WvIoEpDatagramAttributes,
  WvIoEpDatagramQuery,
  WvIoEpDisconnect,
  WvIoEpGetRequest,
  WvIoEpListen,
  WvIoEpLookup,
  WvIoEpMulticast,
  WvIoEpParam,
  WvIoEpRoute,
  WvIoEvent,
  WvIoEventFlags,
  WvIoGid,
  WvIoGuid,
  WvIoGuidList,
  WvIoId,
  WvIoMemoryKeys,
  WvIoMemoryRegister,
  WvIoMwKey,
  WvIoObject,
  WvIoPortAttributes,
  WvIoQpAttributes,
  WvIoQpCreate,
  WvIoQpMulticast,
  WvIoSockaddr,
  WvIoSockaddrData,
  WvIoSockaddrIn,
  WvIoSockaddrIn6,
  WvIoSrqAttributes,
  WvOpcode,
  WvPkeyList,
  WvSend,
  WvWc,
  addressOfGid,
  allocate,
  bits,
  bytes,
  checkSocketAddress,
  claimLocalName,
  cmOptionsSchema,
  countersTable,
  decodeOptionalSockaddr,
  decodeProviderData,
  decodeSockaddr,
  driversTable,
  encodeSockaddr,
  epAttributesRoom,
  faultsTable,
  formatSocketAddress,
  gidOfAddress,
  gidOfSockaddr,
  guidText,
  hcaFileName,
  hcaFileTable,
  ibatIoctls,
  ibatTable,
  injectDeviceFault,
  ioctlName,
  ioctlRow,
  ioctlTable,
  ioctls,
  isIPv4,
  kernelOptionsSchema,
  layouts,
  list,
  loadDriver,
  openDeviceFile,
  packed,
  parseSocketAddress,
  portsOfLocalName,
  providerBytes,
  rcOptionsSchema,
  readCounters,
  readInterfaces,
  readProcesses,
  removeDevice,
  reserved,
  scopeIdOfAddress,
  setPartitions,
  settingsTable,
  sharedGid,
  sockaddrData,
  sockaddrOfGid,
  statusHex,
  statusName,
  statusText,
  struct,
  tableMark,
  u16,
  u16be,
  u24be,
  u32,
  u32be,
  u64,
  u64be,
  u8,
  union,
  unloadDriver,
  withProviderData,
};

// networkdirect/kernel
export {
  AddressFamily,
  AnyField,
  AnyStruct,
  ApmState,
  AtomicCapability,
  AvProviderOut,
  BytesType,
  CaProviderOut,
  CancelRoutine,
  Capacity,
  ChangeCount,
  ClientDriver,
  Codes,
  ConnectionParameters,
  CountersCode,
  CqEventType,
  CqNotifyType,
  CqProviderIn,
  CqProviderOut,
  DEFAULT_PKEY,
  DeviceObject,
  DeviceType,
  DriverDispatch,
  DriverEntry,
  DriverFault,
  DriverObject,
  DriverRoutines,
  DriversCode,
  EndpointAttributes,
  EpOption,
  EpType,
  FaultsCode,
  FieldInfo,
  FieldKey,
  FieldType,
  Fields,
  FieldsInput,
  FieldsValue,
  FileObject,
  Hca,
  HcaFileCode,
  HcaFileName,
  IBAT_VERSION,
  IbAddressVector,
  IbAl,
  IbAv,
  IbCa,
  IbCaAttr,
  IbCaAttributes,
  IbCaDispatch,
  IbCmaHeader,
  IbCq,
  IbCqDispatch,
  IbFastRegion,
  IbIoCaModify,
  IbIoPortEvent,
  IbIoPortModify,
  IbMcast,
  IbMemory,
  IbModifyCa,
  IbModifyPort,
  IbMr,
  IbMw,
  IbPathRecord,
  IbPd,
  IbPortAttr,
  IbPortAttributes,
  IbQp,
  IbQpAsked,
  IbQpCreate,
  IbQpDispatch,
  IbSrq,
  IbSrqAttributes,
  IbSrqDispatch,
  IbatCode,
  IbatIpToPortIn,
  IbatName,
  IbatPathIn,
  IbatPortRecord,
  Input,
  IoStatus,
  IoctlCode,
  IoctlHandler,
  IoctlName,
  IoctlRow,
  IoctlTail,
  IpProtocol,
  Irp,
  IrpQueue,
  IrpStackLocation,
  IrpState,
  KernelAl,
  KernelEndpoint,
  KernelServices,
  KernelTimer,
  KernelVerbs,
  Layouts,
  List,
  MadeCode,
  ModifyCaFlag,
  ModifyPortFlag,
  MwProviderOut,
  NamedIoctlRow,
  PROVIDER_ABI,
  PathParameters,
  PdProviderOut,
  PortCapability,
  PortState,
  PortTransport,
  QpAttr,
  QpAttributeValues,
  QpEventType,
  QpFlag,
  QpMask,
  QpProviderIn,
  QpProviderOut,
  QpState,
  QpStateOut,
  QpType,
  References,
  Refusals,
  Refuse,
  RequestorMode,
  ReservedType,
  RnrRetry,
  SOCKADDR_BYTES,
  SettingsCode,
  SocketAddress,
  SrqEventType,
  SrqProviderIn,
  SrqProviderOut,
  Status,
  StatusError,
  StatusName,
  Struct,
  StructCode,
  Uint64Type,
  UintType,
  UvpAddressVector,
  UvpBindRequest,
  UvpCompletion,
  UvpHandle,
  UvpMemory,
  UvpSendRequest,
  UvpSge,
  VERB_INFO,
  Value,
  WcStatus,
  WithProvider,
  WvAccess,
  WvCapability,
  WvDatagram,
  WvEpIds,
  WvEvent,
  WvGidList,
  WvGuidEntries,
  WvIoAhCreate,
  WvIoAv,
  WvIoConnectParam,
  WvIoDatagramParam,
  WvIoDeviceAddress,
  WvIoDeviceAttributes,
  WvIoDeviceOpen,
  WvIoDevicePortQuery,
  WvIoEpAccept,
  WvIoEpAttributes,
  WvIoEpBind,
  WvIoEpConnect,
  WvIoEpCreate,
  WvIoEpDatagramAccept,
  WvIoEpDatagramAttributes,
  WvIoEpDatagramQuery,
  WvIoEpDisconnect,
  WvIoEpGetRequest,
  WvIoEpListen,
  WvIoEpLookup,
  WvIoEpMulticast,
  WvIoEpParam,
  WvIoEpRoute,
  WvIoEvent,
  WvIoEventFlags,
  WvIoGid,
  WvIoGuid,
  WvIoGuidList,
  WvIoId,
  WvIoMemoryKeys,
  WvIoMemoryRegister,
  WvIoMwKey,
  WvIoObject,
  WvIoPortAttributes,
  WvIoQpAttributes,
  WvIoQpCreate,
  WvIoQpMulticast,
  WvIoSockaddr,
  WvIoSockaddrData,
  WvIoSockaddrIn,
  WvIoSockaddrIn6,
  WvIoSrqAttributes,
  WvOpcode,
  WvPkeyList,
  WvSend,
  WvWc,
  addressOfGid,
  bits,
  bytes,
  checkSocketAddress,
  countersTable,
  decodeOptionalSockaddr,
  decodeProviderData,
  decodeSockaddr,
  driversTable,
  encodeSockaddr,
  epAttributesRoom,
  faultsTable,
  formatSocketAddress,
  gidOfAddress,
  gidOfSockaddr,
  guidText,
  hcaFileName,
  hcaFileTable,
  ibatIoctls,
  ibatTable,
  ioctlName,
  ioctlRow,
  ioctlTable,
  ioctls,
  isIPv4,
  layouts,
  list,
  packed,
  parseSocketAddress,
  providerBytes,
  reserved,
  scopeIdOfAddress,
  settingsTable,
  sharedGid,
  sockaddrData,
  sockaddrOfGid,
  statusHex,
  statusName,
  statusText,
  struct,
  tableMark,
  u16,
  u16be,
  u24be,
  u32,
  u32be,
  u64,
  u64be,
  u8,
  union,
  withProviderData,
};

declare abstract class WVEndpoint extends WvOverlapped implements IWVEndpoint {
    constructor(kind: string, provider: WVProvider, id: bigint, rejectRoom: number, own: 'IWVConnectEndpoint' | 'IWVDatagramEndpoint');
    bindAddress(address: SocketAddress, device?: WvDeviceAddress): SocketAddress;
    resolveRoute(peer: SocketAddress): void;
    modify(path: WvPathRecord): void;
    listen(backlog: number, pkey?: number): void;
    reject(privateData?: Uint8Array): void;
    protected nextRequest(endpoint: WVEndpoint | undefined, given: unknown): Overlapped<void>;
    protected unused(): void;
    protected destroy(): void;
}
declare abstract class WVQueuePair extends WvOverlapped implements IWVQueuePair {
    readonly qpn: number;
    readonly sendSge: number;
    readonly receiveSge: number;
    readonly maxInlineSend: number;
    get state(): number;
    query(): WvQpAttributes;
    modify(attributes: Partial<WvQpAttributes>, options: number): void;
    modifyOverlapped(attributes: Partial<WvQpAttributes>, options: number): Overlapped<void>;
    postReceive(context: unknown, sgl: readonly WvSge[]): void;
    startBatch(): void;
    submitBatch(): void;
    postSend(requests: readonly WvSendRequest[]): void;
    protected destroy(): void;
}
declare abstract class WvObject implements WvUnknown {
    constructor(kind: string, interfaces: readonly (keyof WvInterfaces)[]);
    addRef(): number;
    release(): number;
    queryInterface<N extends keyof WvInterfaces>(name: N): WvInterfaces[N];
    [Symbol.dispose](): void;
    [Symbol.asyncDispose](): Promise<void>;
    protected unused(): void;
    protected abstract destroy(): void;
}
declare abstract class WvOverlapped extends WvObject implements WvOverlappedObject {
    constructor(kind: string, file: KernelFile, cancelCode: number, id: bigint, interfaces: readonly (keyof WvInterfaces)[]);
    cancelOverlappedRequests(): void;
    getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
    protected overlapped<T>(code: number, input: Uint8Array, outputLength: number, decode: (output: Uint8Array) => T, onFailure?: (error: WvError) => unknown, outputAt?: number): Overlapped<T>;
    protected unused(): void;
}
declare class Channel extends EventEmitter implements AsyncIterable<Buffer>, AsyncDisposable {
    error: Error | undefined;
    droppedMessages: number;
    get localAddress(): SocketAddress;
    get remoteAddress(): SocketAddress;
    get destroyed(): boolean;
    ref(): this;
    unref(): this;
    onRequest(handler: RequestHandler): this;
    send(bytes: MessageBytes, options?: AbortOptions): Promise<void>;
    request(bytes: MessageBytes, options?: AbortOptions): Promise<Buffer>;
    receive(options?: AbortOptions): Promise<Buffer | undefined>;
    [Symbol.asyncIterator](): AsyncIterableIterator<Buffer>;
    expose(buffer: Uint8Array, options?: ExposeOptions): Promise<ExposedMemory>;
    open(handle: Uint8Array): RemoteMemory;
    lend(buffer: Uint8Array): Promise<LentMemory>;
    close(options?: AbortOptions): Promise<void>;
    destroy(error?: Error): this;
    [Symbol.asyncDispose](): Promise<void>;
}
declare class ClientDriver extends DriverObject {
    readonly parameters: unknown;
    routines: DriverRoutines;
    createDevice<E = undefined>(name: string, links?: readonly string[], extension?: E): DeviceObject<E>;
    deleteDevice(device: DeviceObject): void;
    onIoctl(code: number, handler: IoctlHandler, inputLength?: number, outputLength?: number): void;
}
declare class DeviceObject<E = unknown> {
    readonly driver: DriverObject;
    readonly name: string;
    readonly extension: E;
    readonly references: References;
    constructor(driver: DriverObject, name: string, extension: E);
    remove(removed?: () => void): void;
}
declare class DriverFault extends Error {
    readonly name = "DriverFault";
}
declare class DriverObject {
    readonly name: string;
    readonly dispatch: DriverDispatch;
    readonly references: References;
    openFiles: number;
    onIdle: () => void;
    constructor(name: string, dispatch: DriverDispatch);
    unload(unloaded: () => void): void;
}
declare class ExposedMemory implements Disposable {
    readonly bytes: Uint8Array;
    get handle(): Uint8Array;
    handleFor(channel: Channel): Uint8Array;
    release(): void;
    [Symbol.dispose](): void;
}
declare class FileObject {
    readonly id: number;
    readonly device: DeviceObject;
    readonly relativeName: string;
    context: unknown;
    closing: boolean;
    readonly outstanding: Set<Irp<number>>;
    constructor(id: number, device: DeviceObject, relativeName: string);
}
declare class Hca {
    unplugged: boolean;
    failed: boolean;
    broken: boolean;
    systemImageGuid: bigint | undefined;
    initType: number;
    readonly limits: HcaLimits;
    get guid(): bigint;
    get gone(): boolean;
    get port(): KnownPort;
}
declare class IbAl {
    readonly client: DeviceObject | DriverObject;
}
declare class IbAv implements WithProvider {
    readonly pd: IbPd;
    readonly handle: number;
    provider: object | null | undefined;
    constructor(pd: IbPd, handle: number, attributes: IbAddressVector);
}
declare class IbCa implements WithProvider {
    readonly al: IbAl;
    readonly device: DeviceObject<Hca>;
    readonly context: unknown;
    readonly dispatch: IbCaDispatch;
    provider: object | null | undefined;
    readonly resources: References;
    closed: boolean;
    readonly fatalWaits: IrpQueue<undefined>;
    readonly portWaits: IrpQueue<undefined>;
    fatalUnreported: boolean;
    readonly portUnreported: number[];
    constructor(al: IbAl, device: DeviceObject<Hca>, context: unknown, dispatch: IbCaDispatch);
    get hca(): Hca;
}
declare class IbCq implements WithProvider {
    readonly ca: IbCa;
    readonly handle: number;
    readonly context: unknown;
    readonly dispatch: IbCqDispatch;
    numCqes: number;
    provider: object | null | undefined;
    readonly resources: References;
    readonly waiters: Set<Irp<number>>;
    readonly kernelWaits: IrpQueue<number>;
    listening: boolean;
    unreported: boolean;
    dead: boolean;
    constructor(ca: IbCa, handle: number, context: unknown, dispatch: IbCqDispatch, numCqes: number);
}
declare class IbFastRegion {
    readonly provider: UvpHandle;
    get key(): number;
}
declare class IbMemory implements UvpMemory {
    readonly bytes: Uint8Array;
    get lkey(): number;
    get rkey(): number;
    get address(): number;
}
declare class IbMr {
    readonly pd: IbPd;
    readonly lkey: number;
    readonly rkey: number;
    constructor(pd: IbPd, lkey: number, rkey: number);
}
declare class IbMw implements WithProvider {
    readonly pd: IbPd;
    readonly handle: number;
    readonly rkey: number;
    provider: object | null | undefined;
    constructor(pd: IbPd, handle: number, rkey: number);
}
declare class IbPd implements WithProvider {
    readonly ca: IbCa;
    readonly handle: number;
    provider: object | null | undefined;
    readonly resources: References;
    constructor(ca: IbCa, handle: number);
}
declare class IbQp implements WithProvider {
    readonly pd: IbPd;
    readonly sendCq: IbCq;
    readonly receiveCq: IbCq;
    readonly srq: IbSrq | undefined;
    readonly handle: number;
    readonly qpn: number;
    readonly create: IbQpCreate;
    readonly context: unknown;
    dispatch: IbQpDispatch;
    provider: object | null | undefined;
    connectionEvent: ((event: number, reason: number) => void) | undefined;
    groups: readonly IbMcast[];
    given: number;
    pkeyIndex: number;
    waits: IrpQueue | undefined;
    unreported: number[] | undefined;
    constructor(pd: IbPd, sendCq: IbCq, receiveCq: IbCq, srq: IbSrq | undefined, handle: number, qpn: number, create: IbQpCreate, context: unknown, dispatch: IbQpDispatch);
}
declare class IbSrq implements WithProvider {
    readonly pd: IbPd;
    readonly handle: number;
    maxWr: number;
    readonly maxSge: number;
    readonly context: unknown;
    readonly dispatch: IbSrqDispatch;
    provider: object | null | undefined;
    readonly resources: References;
    readonly waits: IrpQueue<undefined>;
    limitUnreported: boolean;
    readonly endedUnreported: Set<IbQp>;
    broken: boolean;
    constructor(pd: IbPd, handle: number, maxWr: number, maxSge: number, context: unknown, dispatch: IbSrqDispatch);
}
declare class Irp<T = number> {
    readonly stack: IrpStackLocation;
    readonly requestorMode: RequestorMode;
    readonly native: NativeSlot | undefined;
    readonly ioStatus: IoStatus<T>;
    reparseName: string | undefined;
    driverContext: unknown;
    constructor(init: IrpInit<T>);
    get state(): IrpState;
    get completed(): boolean;
    get returnStatus(): number;
    get cancelRequested(): boolean;
    get outputCapacity(): number;
    takeInput(): Uint8Array;
    get output(): Uint8Array;
    endOutput(): void;
    dispatch(routine: (irp: Irp<T>) => number): number;
    markPending(): number;
    setCancelRoutine(routine: CancelRoutine<T> | undefined): CancelRoutine<T> | undefined;
    cancel(): boolean;
    complete(status: number, information?: T, outputBytes?: number): number;
}
declare class IrpQueue<C = undefined> {
    constructor(onCancelled?: ((irp: Irp, context: C) => void) | undefined);
    get size(): number;
    insert(irp: Irp, context: C): number;
    removeFirst(): {
        irp: Irp;
        context: C;
    } | undefined;
    first(): {
        irp: Irp;
        context: C;
    } | undefined;
    remove(irp: Irp): boolean;
    completeAll(status: number, information?: number): void;
    completeWhere(fits: (context: C) => boolean, status: number, information?: number): number;
    cancelAll(): void;
}
declare class KernelAl {
    readonly al: IbAl;
    readonly verbs: KernelVerbs;
    createEndpoint(): KernelEndpoint;
    close(): number;
}
declare class KernelEndpoint {
    bind(address: SocketAddress, irp: Irp): number;
    listen(backlog: number, irp: Irp): number;
    getRequest(to: KernelEndpoint, irp: Irp): number;
    accept(qp: IbQp, param: ConnectionParameters, irp: Irp): number;
    reject(privateData: Uint8Array, irp: Irp): number;
    connect(qp: IbQp, peer: SocketAddress, param: ConnectionParameters, irp: Irp): number;
    completeConnect(irp: Irp): number;
    disconnect(irp: Irp): number;
    keepQueuePairOnDisconnect(keep: boolean): void;
    notifyDisconnect(irp: Irp): number;
    query(): EndpointAttributes;
    close(): void;
}
declare class KernelFile {
    readonly file: DeviceFile;
    constructor(file: DeviceFile, shared?: Shared, deviceName?: (() => string | undefined) | undefined);
    ofDevice(name: () => string | undefined): KernelFile;
    get extended(): boolean;
    call(code: number, input: Uint8Array | null, outputLength?: number, outputAt?: number): Uint8Array;
    callId(code: number, id: bigint, outputLength?: number): Uint8Array;
    callWith(code: number, head: Uint8Array, tail: Uint8Array, outputLength?: number): Uint8Array;
    overlapped<T>(code: number, input: Uint8Array | null, outputLength: number, decode: (output: Uint8Array) => T, onFailure?: (error: WvError) => unknown, outputAt?: number): Overlapped<T>;
    verb<I extends Fields, O extends Fields>(code: number, input: Struct<I>, output: Struct<O>, hooks: VerbHooks<I, O>, umv?: UmvBuffer): FieldsValue<O>;
    destroy(code: number, id: bigint, post?: (status: number) => void): void;
    destroyBy(code: number, input: Uint8Array, post?: (status: number) => void): void;
    close(): void;
}
declare class KernelMemoryVerbs {
    ciOpenCa<C>(al: IbAl, device: DeviceObject<Hca>, context: C, dispatch: IbCaDispatch<C> | undefined, irp: Irp<IbCa>): number;
    ciCloseCa(ca: IbCa, irp: Irp): number;
    ciAllocatePd(ca: IbCa, irp: Irp<IbPd>): number;
    ciDeallocatePd(pd: IbPd, irp: Irp): number;
    ciRegisterMr(pd: IbPd, memory: Uint8Array, access: number, irp: Irp<IbMemory>): number;
    ciDeregisterMr(memory: IbMemory, irp: Irp): number;
    ciAllocateFastRegMr(pd: IbPd, maxLength: number, irp: Irp<IbFastRegion>): number;
    ciFreeFastRegMr(memory: IbFastRegion, irp: Irp): number;
    ciAllocateMw(pd: IbPd, irp: Irp<IbMw>): number;
    ciDeallocateMw(mw: IbMw, irp: Irp): number;
}
declare class KernelServices {
    readonly verbs: ObjectVerbs;
    hcaGuids(): bigint[];
    hcaOfAddress(address: string): bigint;
    referenceHca(guid: bigint): DeviceObject<Hca>;
    dereference(device: DeviceObject): void;
    openAl(hca: DeviceObject<Hca>, client?: DeviceObject | ClientDriver): KernelAl;
    openFile(name: string): FileObject;
    closeFile(file: FileObject): void;
    request(file: FileObject, code: number, input: Uint8Array, outputLength: number, done: (status: number, output: Uint8Array, information: number) => void): Irp;
    call<T>(verb: (irp: Irp<T>) => number, done: (status: number, information: T | undefined) => void): Irp<T>;
    wait<T>(verb: (irp: Irp<T>) => number): Promise<T>;
    queueWorkItem(work: () => void): void;
    setTimer(milliseconds: number, expired: () => void): KernelTimer;
}
declare class KernelVerbs extends KernelMemoryVerbs {
    ciCreateCq<C>(ca: IbCa, entries: number, context: C, dispatch: IbCqDispatch<C> | undefined, irp: Irp<IbCq>): number;
    ciResizeCq(cq: IbCq, entries: number, irp: Irp): number;
    ciDestroyCq(cq: IbCq, irp: Irp): number;
    ciPollCq(cq: IbCq, completions: UvpCompletion[], n: number): number;
    ciRearmCq(cq: IbCq, solicitedOnly: boolean): number;
    ciRearmNCq(cq: IbCq, count: number): number;
    ciPeekCq(cq: IbCq): number;
    ciCreateSrq<C>(pd: IbPd, request: srqs.IbSrqAttributes, context: C, dispatch: IbSrqDispatch<C> | undefined, irp: Irp<IbSrq>): number;
    ciModifySrq(srq: IbSrq, request: Pick<srqs.IbSrqAttributes, 'maxWr' | 'srqLimit'>, irp: Irp): number;
    ciDestroySrq(srq: IbSrq, irp: Irp): number;
    ciPostSrqRecv(srq: IbSrq, context: unknown, sgl: readonly UvpSge[]): number;
    ciCreateQp<C>(pd: IbPd, requested: IbQpAsked, context: C, dispatch: IbQpDispatch<C> | undefined, irp: Irp<IbQp>): number;
    ciModifyQp(qp: IbQp, mask: number, attributes: Partial<QpAttributeValues>, irp: Irp): number;
    ciDestroyQp(qp: IbQp, irp: Irp): number;
    ciPostSend(qp: IbQp, request: UvpSendRequest): number;
    ciPostRecv(qp: IbQp, context: unknown, sgl: readonly UvpSge[]): number;
    ciBindMw(mw: IbMw, qp: IbQp, request: UvpBindRequest): {
        status: number;
        rkey: number;
    };
    ciInvalidateMw(mw: IbMw, qp: IbQp, context: unknown, flags: number): number;
    ciCreateAv(pd: IbPd, av: IbAddressVector, irp: Irp<IbAv>): number;
    ciDestroyAv(av: IbAv, irp: Irp): number;
}
declare class LentMemory implements Disposable {
    get bytes(): Uint8Array;
    release(): void;
    [Symbol.dispose](): void;
}
declare class MemoryRegion implements WvMemoryRegion {
    readonly lkey: number;
    readonly rkey: number;
    readonly length: number;
    readonly address: number;
    constructor(lkey: number, rkey: number, bytes: Uint8Array, length: number, pin: UvpPin, address?: number);
    get bytes(): Uint8Array;
}
declare class Nd2RemoteMemory {
    static readonly size = 12;
    readonly address: bigint;
    readonly token: number;
    readonly addressLow: number;
    readonly addressHigh: number;
    readonly rkey: number;
    constructor(address: bigint | number, token: number);
    static of(region: Pick<IND2MemoryRegion, 'address' | 'getRemoteToken'>): Nd2RemoteMemory;
    encode(out?: Uint8Array, offset?: number): Uint8Array;
    static decode(bytes: Uint8Array, offset?: number): Nd2RemoteMemory;
}
declare class NdError extends StatusError {
}
declare class NdMwDescriptor {
    static readonly size = 20;
    readonly base: bigint;
    readonly length: bigint;
    readonly token: number;
    readonly addressLow: number;
    readonly addressHigh: number;
    readonly rkey: number;
    constructor(base: bigint | number, length: bigint | number, token: number);
    encode(out?: Uint8Array, offset?: number): Uint8Array;
    static decode(bytes: Uint8Array, offset?: number): NdMwDescriptor;
}
declare class NetError extends Error {
    readonly code: string;
    readonly syscall?: Call['syscall'];
    readonly address?: string;
    readonly port?: number;
    constructor(code: string, message: string, options?: ErrorOptions, call?: Pick<NetError, 'syscall' | 'address' | 'port'>);
}
declare class Overlapped<T> implements PromiseLike<T> {
    constructor(source: OverlappedSource<T>);
    static succeeded<T>(value: T): Overlapped<T>;
    static failed<T = never>(error: StatusError): Overlapped<T>;
    get completed(): boolean;
    get status(): number;
    getResult(options?: GetResultOptions): T;
    cancel(): void;
    ref(): this;
    unref(): this;
    abortOn(signal: AbortSignal): this;
    translateFailure(translate: (error: StatusError) => StatusError): this;
    map<U>(onSuccess: (value: T) => U, onFailure?: (error: StatusError) => StatusError): Overlapped<U>;
    recover<U>(recover: (error: StatusError) => U | undefined): Overlapped<T | U>;
    derive<U>(onSuccess: (value: T) => U, onFailure: (error: StatusError) => U): Overlapped<U>;
    settle(): boolean;
    then<A = T, B = never>(onFulfilled?: ((value: T) => A | PromiseLike<A>) | null, onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<A | B>;
    catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B>;
    finally(onFinally?: (() => void) | null): Promise<T>;
    get [Symbol.toStringTag](): string;
}
declare class References {
    get users(): number;
    acquire(): void;
    release(): void;
    end(ended: () => void): void;
    get ending(): boolean;
}
declare class RemoteMemory implements RemoteMemoryRef {
    readonly address: bigint;
    readonly rkey: number;
    readonly addressLow: number;
    readonly addressHigh: number;
    constructor(memory: WvRemoteMemory);
}
declare class RemoteMemory {
    readonly length: number;
    readonly writable: boolean;
    readonly views: boolean;
    get direct(): boolean;
    readSync(offset: number, into: Uint8Array): void;
    writeSync(offset: number, from: Uint8Array): void;
    compareExchangeSync(offset: number, expected: bigint, replacement: bigint): bigint;
    fetchAddSync(offset: number, value: bigint): bigint;
    map(): Promise<Uint8Array<ArrayBuffer>>;
    read(offset: number, length: number, options?: RemoteOptions): Promise<Buffer>;
    write(offset: number, bytes: Uint8Array, options?: RemoteOptions): Promise<void>;
    compareExchange(offset: number, expected: bigint, replacement: bigint, options?: RemoteOptions): Promise<bigint>;
    fetchAdd(offset: number, value: bigint, options?: RemoteOptions): Promise<bigint>;
}
declare class Server extends EventEmitter implements AsyncDisposable {
    get maxConnections(): number | undefined;
    set maxConnections(most: number | undefined);
    dropMaxConnection: boolean;
    get listening(): boolean;
    get connections(): number;
    get clientErrors(): number;
    getConnections(callback: (error: Error | null, count: number) => void): this;
    ref(): this;
    unref(): this;
    address(): {
        address: string;
        family: 'IPv4' | 'IPv6';
        port: number;
    } | null;
    listen(port?: number | ListenOptions | (() => void) | null, host?: string | number | (() => void) | null, backlog?: number | (() => void) | null, listening?: () => void): this;
    expose(buffer: Uint8Array, options?: ExposeOptions): Promise<ExposedMemory>;
    broadcast(message: MessageBytes, options?: BroadcastOptions): BroadcastResult;
    get droppedMessages(): number;
    close(done?: (error?: Error) => void): Promise<void>;
    closeAllConnections(): void;
    closeIdleConnections(): void;
    [Symbol.asyncDispose](): Promise<void>;
}
declare class SharedMap<V = Uint8Array | string, R = V> implements AsyncDisposable {
    get size(): number;
    address(): ReturnType<Server['address']>;
    set(key: string, value: V, options?: SetOptions): void;
    get(key: string): R | undefined;
    getInto(key: string, target: Uint8Array): number;
    has(key: string): boolean;
    delete(key: string): boolean;
    clear(): void;
    add(name: string, amount: number): number;
    ref(): this;
    unref(): this;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
declare class SharedMapView<V = Uint8Array | string, R = V> extends EventEmitter implements AsyncDisposable {
    get direct(): boolean;
    get size(): number | undefined;
    get(key: string): R | undefined;
    getInto(key: string, target: Uint8Array): number;
    has(key: string): boolean;
    getAsync(key: string): Promise<R | undefined>;
    set(key: string, value: V, options?: SetOptions): Promise<void>;
    delete(key: string): Promise<boolean>;
    add(name: string, amount: number): number;
    addAsync(name: string, amount: number): Promise<number>;
    ref(): this;
    unref(): this;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
declare class Socket extends Duplex {
    ref(): this;
    unref(): this;
    get connecting(): boolean;
    get pending(): boolean;
    get bytesRead(): number;
    get bytesWritten(): number;
    address(): {
        address?: string;
        family?: 'IPv4' | 'IPv6';
        port?: number;
    };
    get localFamily(): 'IPv4' | 'IPv6' | undefined;
    get remoteFamily(): 'IPv4' | 'IPv6' | undefined;
    get localAddress(): string | undefined;
    get localPort(): number | undefined;
    get remoteAddress(): string | undefined;
    get remotePort(): number | undefined;
    get timeout(): number;
    setTimeout(ms: number, callback?: () => void): this;
    setNoDelay(): this;
    setKeepAlive(): this;
    resetAndDestroy(): this;
    destroySoon(): void;
    pause(): this;
    resume(): this;
    get readyState(): 'opening' | 'open' | 'readOnly' | 'writeOnly' | 'closed';
}
declare class StatusError extends Error {
    readonly status: number;
    readonly code: string;
    output: Uint8Array | undefined;
    constructor(status: number, message?: string, options?: ErrorOptions);
}
declare class UmvBuffer {
    command: number;
    status: number;
    processingDone: boolean;
    input: Uint8Array;
    outputSize: number;
    output: Uint8Array;
    address: number;
}
declare class UvpBindRequest {
    context: unknown;
    flags: number;
    region: UvpMemory;
    offset: number;
    length: number;
    access: number;
}
declare class UvpSendRequest {
    context: unknown;
    opcode: number;
    flags: number;
    sgl: readonly UvpSge[];
    immediate: number;
    invalidate: boolean;
    remoteLow: number;
    remoteHigh: number;
    remoteOffset: number;
    rkey: number;
    compareLow: number;
    compareHigh: number;
    swapLow: number;
    swapHigh: number;
    av: UvpHandle;
    remoteQpn: number;
    remoteQkey: number;
    fastRegion: UvpHandle;
    access: number;
    keyByte: number;
}
declare class WVAddressHandle extends WvObject implements IWVAddressHandle {
    protected destroy(): void;
}
declare class WVCompletionQueue extends WvOverlapped implements IWVCompletionQueue {
    get entries(): number;
    resize(entries: number): void;
    peek(): number;
    poll(completions: WvCompletion[], n?: number): number;
    notify(type: WvCqNotifyType): Overlapped<void>;
    batchNotify(n: number): Overlapped<void>;
    protected destroy(): void;
}
declare class WVConnectEndpoint extends WVEndpoint implements IWVConnectEndpoint {
    listen(backlog: number, pkey?: number): void;
    getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
    connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
    accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
    disconnect(): Overlapped<void>;
    keepQueuePairOnDisconnect(keep: boolean): void;
    notifyDisconnect(): Overlapped<void>;
    query(): WvConnectAttributes;
    protected destroy(): void;
}
declare class WVConnectQueuePair extends WVQueuePair implements IWVConnectQueuePair {
    readonly initiatorDepth: number;
    readonly responderResources: number;
    readonly direct?: NonNullable<IWVConnectQueuePair['direct']>;
    readonly view?: NonNullable<IWVConnectQueuePair['view']>;
    send(context: unknown, sgl: readonly WvSge[], flags: number, immediate?: number): void;
    sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void;
    read(context: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number): void;
    write(context: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number, immediate?: number): void;
    compareExchange(context: unknown, sge: WvSge, flags: number, compare: bigint, exchange: bigint, remote: RemoteMemoryRef, offset: number): void;
    fetchAdd(context: unknown, sge: WvSge, flags: number, value: bigint, remote: RemoteMemoryRef, offset: number): void;
    bindMemoryWindow(window: IWVMemoryWindow, context: unknown, region: WvMemoryRegion, offset: number, length: number, access: number, flags: number): number;
    invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void;
    fastRegister(region: IWVFastRegion, context: unknown, memory: WvSge, access: number, flags: number, keyByte?: number): number;
    invalidateRegion(region: IWVFastRegion, context: unknown, flags: number): void;
}
declare class WVDatagramEndpoint extends WVEndpoint implements IWVDatagramEndpoint {
    getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void>;
    lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes>;
    accept(param: WvDatagramParam): Overlapped<void>;
    joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes>;
    leaveMulticast(group: SocketAddress): Overlapped<void>;
    query(peer?: SocketAddress): WvDatagramAttributes;
}
declare class WVDatagramQueuePair extends WVQueuePair implements IWVDatagramQueuePair {
    start(qkey: number, options?: WvDatagramStart): void;
    send(context: unknown, addressHandle: IWVAddressHandle, sge: WvSge, flags: number, destinationQpn: number, destinationQkey: number): void;
    sendMessage(message: WvSendDatagram): void;
    attachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
    detachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
}
declare class WVDevice extends WvOverlapped implements IWVDevice {
    readonly guid: bigint;
    get name(): string;
    query(): WvDeviceAttributes;
    queryPort(port: number): WvPortAttributes;
    queryGid(port: number, index: number): Uint8Array;
    findGid(port: number, gid: Uint8Array): number;
    queryPkey(port: number, index: number): number;
    findPkey(port: number, pkey: number): number;
    createCompletionQueue(entries: number): IWVCompletionQueue;
    allocateProtectionDomain(): IWVProtectionDomain;
    notify(port: number): Overlapped<number>;
    protected destroy(): void;
}
declare class WVFastRegion extends WvObject implements IWVFastRegion {
    readonly maxLength: number;
    get rkey(): number;
    get lkey(): number;
    get address(): number;
    get length(): number;
    get bytes(): Uint8Array;
    protected destroy(): void;
}
declare class WVMemoryWindow extends WvObject implements IWVMemoryWindow {
    get rkey(): number;
    protected destroy(): void;
}
declare class WVProtectionDomain extends WvOverlapped implements IWVProtectionDomain {
    registerMemory(buffer: ArrayBufferLike | ArrayBufferView, access: number): WvMemoryRegion;
    registerMemoryOverlapped(buffer: ArrayBufferLike | ArrayBufferView, access: number): Overlapped<WvMemoryRegion>;
    deregisterMemory(region: WvMemoryRegion): void;
    deregisterMemoryOverlapped(region: WvMemoryRegion): Overlapped<void>;
    allocateMemoryWindow(): IWVMemoryWindow;
    allocateFastRegion(maxLength: number): IWVFastRegion;
    createSharedReceiveQueue(maxWr: number, maxSge: number, srqLimit?: number): IWVSharedReceiveQueue;
    createConnectQueuePair(create: WvQpCreate): IWVConnectQueuePair;
    createDatagramQueuePair(create: WvQpCreate): IWVDatagramQueuePair;
    createAddressHandle(vector: WvAddressVector): IWVAddressHandle;
    protected destroy(): void;
}
declare class WVProvider extends WvObject implements IWVProvider {
    constructor(doors: ProviderDoors);
    get maxAcceptData(): number;
    getFileHandle(): DeviceFile;
    queryDeviceList(): bigint[];
    notifyDeviceChange(known: number): Overlapped<number>;
    queryDevice(guid: bigint): WvDeviceAttributes;
    translateAddress(address: string | SocketAddress): WvDeviceAddress;
    resolvePath(remote: string | SocketAddress, local?: string | SocketAddress): WvPath;
    openDevice(guid: bigint): IWVDevice;
    createConnectEndpoint(protocol?: number): IWVConnectEndpoint;
    createDatagramEndpoint(): IWVDatagramEndpoint;
    protected destroy(): void;
}
declare class WVSharedReceiveQueue extends WvOverlapped implements IWVSharedReceiveQueue {
    query(): WvSrqAttributes;
    modify(maxWr: number, limit: number): void;
    postReceive(context: unknown, sgl: readonly WvSge[]): void;
    notify(): Overlapped<WvSrqEvent>;
    protected destroy(): void;
}
declare class WvError extends StatusError {
    failedRequest?: number;
}
declare const AddressFamily: {
    readonly IPV4: 2;
    readonly IPV6: 23;
};
declare const ApmState: {
    readonly MIGRATED: 1;
    readonly REARM: 2;
    readonly ARMED: 3;
};
declare const AtomicCapability: {
    readonly NONE: 0;
    readonly DEVICE: 1;
    readonly NODE: 2;
};
declare const AvProviderOut: Struct<{
    readonly Handle: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const COUNTERS_DEVICE = "\\\\.\\NetworkDirectCounters";
declare const CaProviderOut: Struct<{
    readonly MaxSge: import("./layout-fields.js").UintType;
    readonly MaxInline: import("./layout-fields.js").UintType;
    readonly MaxQpWr: import("./layout-fields.js").UintType;
    readonly MaxCqEntries: import("./layout-fields.js").UintType;
    readonly MaxSrqWr: import("./layout-fields.js").UintType;
    readonly MaxSrqSge: import("./layout-fields.js").UintType;
}>;
declare const Capacity: {
    readonly CONNECT_DATA: 56;
    readonly REP_DATA: 196;
    readonly REJ_DATA: 148;
    readonly LOOKUP_DATA: 180;
    readonly LOOKUP_REPLY_DATA: 136;
    readonly LIBRARY_NAME: 32;
    readonly EP_CREATE_IDS: 16;
};
declare const ChangeCount: import("./layout-types.js").Struct<{
    readonly Count: import("./layout-fields.js").UintType;
}>;
declare const CountersCode: Codes<{
    readonly QUERY: IoctlRow<2237440>;
    readonly INTERFACES: IoctlRow<2237444>;
}>;
declare const CqEventType: {
    readonly completion: 1;
    readonly overrun: 2;
};
declare const CqNotifyType: {
    readonly ERROR: 0;
    readonly NEXT_COMPLETION: 1;
    readonly SOLICITED: 2;
};
declare const CqProviderIn: Struct<{
    readonly RingAddress: import("./layout-fields.js").Uint64Type;
    readonly RingBytes: import("./layout-fields.js").UintType;
    readonly Entries: import("./layout-fields.js").UintType;
}>;
declare const CqProviderOut: Struct<{
    readonly Handle: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const DEFAULT_PKEY = 65535;
declare const DRIVERS_DEVICE = "\\\\.\\NetworkDirectDrivers";
declare const DeviceType: {
    readonly UNKNOWN: 0;
    readonly INFINIBAND: 1;
    readonly IWARP: 2;
};
declare const DriversCode: Codes<{
    readonly LOAD: IoctlRow<2237472>;
    readonly UNLOAD: IoctlRow<2237476>;
}>;
declare const EpOption: {
    readonly ROUTE: 1;
    readonly KEEP_QP: 2147483649;
    readonly PARTITION: 2147483650;
};
declare const EpType: {
    readonly CONNECT: 262;
    readonly DATAGRAM: 273;
};
declare const FAULTS_DEVICE = "\\\\.\\NetworkDirectFaults";
declare const FaultsCode: Codes<{
    readonly UNPLUG: IoctlRow<2237456>;
    readonly PLUG: IoctlRow<2237460>;
    readonly FATAL: IoctlRow<2237464>;
    readonly QUERY_REMOVE: IoctlRow<2237468>;
}>;
declare const GRH_BYTES = 40;
declare const HcaFileCode: Codes<{
    readonly CA_QUERY: IoctlRow<3924992>;
    readonly CA_PORT_QUERY: IoctlRow<3924996>;
    readonly CA_MODIFY: IoctlRow<3925000>;
    readonly CA_PORT_MODIFY: IoctlRow<3925004>;
    readonly CA_FATAL_EVENT: IoctlRow<3925008>;
    readonly CA_PORT_EVENT: IoctlRow<3925012>;
}>;
declare const IBAT_VERSION = 6;
declare const IbCaAttr: import("./layout-types.js").Struct<{
    readonly Size: import("./layout-fields.js").UintType;
    readonly PortCount: import("./layout-fields.js").UintType;
    readonly Attributes: import("./layout-types.js").Struct<{
        readonly FwVersion: import("./layout-fields.js").Uint64Type;
        readonly NodeGuid: import("./layout-fields.js").Uint64Type;
        readonly SystemImageGuid: import("./layout-fields.js").Uint64Type;
        readonly VendorId: import("./layout-fields.js").UintType;
        readonly VendorPartId: import("./layout-fields.js").UintType;
        readonly HwVersion: import("./layout-fields.js").UintType;
        readonly CapabilityFlags: import("./layout-fields.js").UintType;
        readonly AtomicCapability: import("./layout-fields.js").UintType;
        readonly PageSizeCapabilityFlags: import("./layout-fields.js").UintType;
        readonly MaxMrSize: import("./layout-fields.js").Uint64Type;
        readonly MaxQp: import("./layout-fields.js").UintType;
        readonly MaxQpWr: import("./layout-fields.js").UintType;
        readonly MaxSge: import("./layout-fields.js").UintType;
        readonly MaxCq: import("./layout-fields.js").UintType;
        readonly MaxCqEntries: import("./layout-fields.js").UintType;
        readonly MaxMr: import("./layout-fields.js").UintType;
        readonly MaxPd: import("./layout-fields.js").UintType;
        readonly MaxQpResponderResources: import("./layout-fields.js").UintType;
        readonly MaxResponderResources: import("./layout-fields.js").UintType;
        readonly MaxQpInitiatorDepth: import("./layout-fields.js").UintType;
        readonly MaxInlineSend: import("./layout-fields.js").UintType;
        readonly MaxMw: import("./layout-fields.js").UintType;
        readonly MaxMulticast: import("./layout-fields.js").UintType;
        readonly MaxQpAttach: import("./layout-fields.js").UintType;
        readonly MaxMulticastQp: import("./layout-fields.js").UintType;
        readonly MaxAh: import("./layout-fields.js").UintType;
        readonly MaxFmr: import("./layout-fields.js").UintType;
        readonly MaxMapPerFmr: import("./layout-fields.js").UintType;
        readonly MaxSrq: import("./layout-fields.js").UintType;
        readonly MaxSrqWr: import("./layout-fields.js").UintType;
        readonly MaxSrqSge: import("./layout-fields.js").UintType;
        readonly MaxPkeys: import("./layout-fields.js").UintType;
        readonly DeviceType: import("./layout-fields.js").UintType;
        readonly LocalAckDelay: import("./layout-fields.js").UintType;
        readonly PhysPortCount: import("./layout-fields.js").UintType;
        readonly MaxReadSge: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
}>;
declare const IbCmaHeader: import("./layout-types.js").Struct<{
    readonly CmaVersion: import("./layout-fields.js").UintType;
    readonly IpVersion: import("./layout-fields.js").UintType;
    readonly Port: import("./layout-fields.js").UintType;
    readonly SrcAddress: import("./layout-fields.js").BytesType;
    readonly DstAddress: import("./layout-fields.js").BytesType;
}>;
declare const IbIoCaModify: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly Flags: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
    readonly SystemImageGuid: import("./layout-fields.js").Uint64Type;
}>;
declare const IbIoPortEvent: import("./layout-types.js").Struct<{
    readonly PortNumber: import("./layout-fields.js").UintType;
    readonly Event: import("./layout-fields.js").UintType;
}>;
declare const IbIoPortModify: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly Flags: import("./layout-fields.js").UintType;
    readonly SetCapabilities: import("./layout-fields.js").UintType;
    readonly ClearCapabilities: import("./layout-fields.js").UintType;
    readonly PortNumber: import("./layout-fields.js").UintType;
    readonly InitType: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const IbPathRecord: import("./layout-types.js").Struct<{
    readonly service_id: import("./layout-fields.js").Uint64Type;
    readonly dgid: import("./layout-fields.js").BytesType;
    readonly sgid: import("./layout-fields.js").BytesType;
    readonly dlid: import("./layout-fields.js").UintType;
    readonly slid: import("./layout-fields.js").UintType;
    readonly hop_flow_raw: import("./layout-fields.js").UintType;
    readonly tclass: import("./layout-fields.js").UintType;
    readonly num_path: import("./layout-fields.js").UintType;
    readonly pkey: import("./layout-fields.js").UintType;
    readonly qos_class_sl: import("./layout-fields.js").UintType;
    readonly mtu: import("./layout-fields.js").UintType;
    readonly rate: import("./layout-fields.js").UintType;
    readonly pkt_life: import("./layout-fields.js").UintType;
    readonly preference: import("./layout-fields.js").UintType;
    readonly resv2: import("./layout-types.js").ReservedType;
}>;
declare const IbPortAttr: import("./layout-types.js").Struct<{
    readonly Size: import("./layout-fields.js").UintType;
    readonly Capabilities: import("./layout-fields.js").UintType;
    readonly Attributes: import("./layout-types.js").Struct<{
        readonly PortCabilityFlags: import("./layout-fields.js").UintType;
        readonly State: import("./layout-fields.js").UintType;
        readonly MaxMtu: import("./layout-fields.js").UintType;
        readonly ActiveMtu: import("./layout-fields.js").UintType;
        readonly GidTableLength: import("./layout-fields.js").UintType;
        readonly MaxMessageSize: import("./layout-fields.js").UintType;
        readonly BadPkeyCounter: import("./layout-fields.js").UintType;
        readonly QkeyViolationCounter: import("./layout-fields.js").UintType;
        readonly PkeyTableLength: import("./layout-fields.js").UintType;
        readonly Lid: import("./layout-fields.js").UintType;
        readonly SmLid: import("./layout-fields.js").UintType;
        readonly Lmc: import("./layout-fields.js").UintType;
        readonly MaxVls: import("./layout-fields.js").UintType;
        readonly SmSl: import("./layout-fields.js").UintType;
        readonly SubnetTimeout: import("./layout-fields.js").UintType;
        readonly InitTypeReply: import("./layout-fields.js").UintType;
        readonly ActiveWidth: import("./layout-fields.js").UintType;
        readonly ActiveSpeed: import("./layout-fields.js").UintType;
        readonly PhysicalState: import("./layout-fields.js").UintType;
        readonly Transport: import("./layout-fields.js").UintType;
        readonly ExtActiveSpeed: import("./layout-fields.js").UintType;
        readonly LinkEncoding: import("./layout-fields.js").UintType;
        readonly Pad: import("./layout-types.js").ReservedType;
    }>;
    readonly GidCount: import("./layout-fields.js").UintType;
    readonly PkeyCount: import("./layout-fields.js").UintType;
}>;
declare const IbatCode: Codes<{
    readonly IP_TO_PORT: IoctlRow<2236432>;
    readonly PATH: IoctlRow<2236440>;
}>;
declare const IbatIpToPortIn: import("./layout-types.js").Struct<{
    readonly Version: import("./layout-fields.js").UintType;
    readonly Address: import("./layout-fields.js").BytesType;
}>;
declare const IbatPathIn: import("./layout-types.js").Struct<{
    readonly Version: import("./layout-fields.js").UintType;
    readonly LocalAddress: import("./layout-fields.js").BytesType;
    readonly RemoteAddress: import("./layout-fields.js").BytesType;
}>;
declare const IbatPortRecord: import("./layout-types.js").Struct<{
    readonly CaGuid: import("./layout-fields.js").Uint64Type;
    readonly PortGuid: import("./layout-fields.js").Uint64Type;
    readonly PKey: import("./layout-fields.js").UintType;
    readonly PortNum: import("./layout-fields.js").UintType;
    readonly Pad: import("./layout-types.js").ReservedType;
}>;
declare const IoctlCode: Codes<{
    readonly GUID_QUERY: IoctlRow<3923972>;
    readonly LIBRARY_QUERY: IoctlRow<3923976>;
    readonly DEVICE_OPEN: IoctlRow<3923980>;
    readonly DEVICE_CLOSE: IoctlRow<3923984>;
    readonly DEVICE_QUERY: IoctlRow<3923988>;
    readonly DEVICE_PORT_QUERY: IoctlRow<3923992>;
    readonly DEVICE_GID_QUERY: IoctlRow<3923996>;
    readonly DEVICE_PKEY_QUERY: IoctlRow<3924000>;
    readonly DEVICE_NOTIFY: IoctlRow<3924004>;
    readonly DEVICE_CANCEL: IoctlRow<3924008>;
    readonly PD_ALLOCATE: IoctlRow<3924012>;
    readonly PD_DEALLOCATE: IoctlRow<3924016>;
    readonly MEMORY_REGISTER: IoctlRow<3924020>;
    readonly MEMORY_DEREGISTER: IoctlRow<3924024>;
    readonly MW_ALLOCATE: IoctlRow<3924028>;
    readonly MW_DEALLOCATE: IoctlRow<3924032>;
    readonly AH_CREATE: IoctlRow<3924036>;
    readonly AH_DESTROY: IoctlRow<3924040>;
    readonly CQ_CREATE: IoctlRow<3924044>;
    readonly CQ_DESTROY: IoctlRow<3924048>;
    readonly CQ_RESIZE: IoctlRow<3924052>;
    readonly CQ_NOTIFY: IoctlRow<3924056>;
    readonly CQ_CANCEL: IoctlRow<3924060>;
    readonly SRQ_CREATE: IoctlRow<3924064>;
    readonly SRQ_DESTROY: IoctlRow<3924068>;
    readonly SRQ_QUERY: IoctlRow<3924072>;
    readonly SRQ_MODIFY: IoctlRow<3924076>;
    readonly SRQ_NOTIFY: IoctlRow<3924080>;
    readonly SRQ_CANCEL: IoctlRow<3924084>;
    readonly QP_CREATE: IoctlRow<3924088>;
    readonly QP_DESTROY: IoctlRow<3924092>;
    readonly QP_QUERY: IoctlRow<3924096>;
    readonly QP_MODIFY: IoctlRow<3924100>;
    readonly QP_ATTACH: IoctlRow<3924104>;
    readonly QP_DETACH: IoctlRow<3924108>;
    readonly QP_CANCEL: IoctlRow<3924112>;
    readonly EP_CREATE: IoctlRow<3924116>;
    readonly EP_DESTROY: IoctlRow<3924120>;
    readonly EP_MODIFY: IoctlRow<3924124>;
    readonly EP_BIND: IoctlRow<3924128>;
    readonly EP_REJECT: IoctlRow<3924132>;
    readonly EP_CONNECT: IoctlRow<3924136>;
    readonly EP_ACCEPT: IoctlRow<3924140>;
    readonly EP_DISCONNECT: IoctlRow<3924144>;
    readonly EP_DISCONNECT_NOTIFY: IoctlRow<3924148>;
    readonly EP_QUERY: IoctlRow<3924152>;
    readonly EP_LOOKUP: IoctlRow<3924156>;
    readonly EP_MULTICAST_JOIN: IoctlRow<3924160>;
    readonly EP_MULTICAST_LEAVE: IoctlRow<3924164>;
    readonly EP_CANCEL: IoctlRow<3924168>;
    readonly EP_LISTEN: IoctlRow<3924172>;
    readonly EP_GET_REQUEST: IoctlRow<3924176>;
    readonly PD_CANCEL: IoctlRow<3924180>;
    readonly MEMORY_ALLOCATE: IoctlRow<3924480>;
}>;
declare const IpProtocol: {
    readonly TCP: 6;
    readonly UDP: 17;
};
declare const MULTICAST_QPN: 16777215;
declare const ModifyCaFlag: {
    readonly SYSTEM_IMAGE_GUID: 1;
};
declare const ModifyPortFlag: {
    readonly SET_CAPABILITIES: 1;
    readonly CLEAR_CAPABILITIES: 2;
    readonly INIT_TYPE: 4;
};
declare const MwProviderOut: Struct<{
    readonly Handle: import("./layout-fields.js").UintType;
    readonly Rkey: import("./layout-fields.js").UintType;
}>;
declare const ND_VERSION_1 = 1;
declare const ND_VERSION_2 = 131072;
declare const Nd2AdapterFlag: {
    readonly IN_ORDER_DMA_SUPPORTED: 1;
    readonly CQ_INTERRUPT_MODERATION_SUPPORTED: 4;
    readonly MULTI_ENGINE_SUPPORTED: 8;
    readonly CQ_RESIZE_SUPPORTED: 256;
    readonly LOOPBACK_CONNECTIONS_SUPPORTED: 65536;
};
declare const Nd2Direct: {
    readonly WRITE: 0;
    readonly READ: 1;
    readonly FETCH_ADD: 2;
    readonly COMPARE_EXCHANGE: 3;
};
declare const Nd2DirectResult: {
    readonly DONE: 0;
    readonly NOT_MAPPED: 1;
    readonly REFUSED: 2;
    readonly UNKNOWN: 3;
};
declare const Nd2MrFlag: {
    readonly ALLOW_LOCAL_WRITE: 1;
    readonly ALLOW_REMOTE_READ: 2;
    readonly ALLOW_REMOTE_WRITE: 5;
    readonly RDMA_READ_SINK: 8;
    readonly ALL: 15;
    readonly ALLOW_REMOTE_ATOMIC: 64;
    readonly ALLOW_REMOTE_VIEW: 128;
    readonly DO_NOT_SECURE_VM: 2147483648;
};
declare const Nd2OpFlag: {
    readonly INLINE: 32;
    readonly SILENT_SUCCESS: 1;
    readonly READ_FENCE: 2;
    readonly SEND_AND_SOLICIT_EVENT: 4;
    readonly ALLOW_READ: 8;
    readonly ALLOW_WRITE: 16;
};
declare const Nd2RequestType: {
    readonly RECEIVE: 0;
    readonly SEND: 1;
    readonly BIND: 2;
    readonly INVALIDATE: 3;
    readonly READ: 4;
    readonly WRITE: 5;
};
declare const NdOpFlag: {
    readonly SILENT_SUCCESS: 1;
    readonly READ_FENCE: 2;
    readonly SEND_AND_SOLICIT_EVENT: 4;
    readonly ALLOW_READ: 8;
    readonly ALLOW_WRITE: 16;
};
declare const NdQueryFlag: {
    readonly EXCLUDE_EMULATOR_ADDRESSES: 1;
    readonly EXCLUDE_NDV1_ADDRESSES: 2;
    readonly EXCLUDE_NDV2_ADDRESSES: 4;
};
declare const PROVIDER_ABI = 1;
declare const PdProviderOut: Struct<{
    readonly Handle: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const PortCapability: {
    readonly IS_SM: 1;
    readonly SNMP_SUP: 2;
    readonly DEV_MGMT_SUP: 4;
    readonly VENDOR_SUP: 8;
    readonly CM_SUP: 16;
};
declare const PortState: {
    readonly NOP: 0;
    readonly DOWN: 1;
    readonly INIT: 2;
    readonly ARMED: 3;
    readonly ACTIVE: 4;
    readonly ACTIVE_DEFER: 5;
};
declare const PortTransport: {
    readonly IB: 0;
    readonly IWARP: 1;
    readonly RDMAOE: 2;
};
declare const QpAttr: {
    readonly CAPABILITIES: 1;
    readonly INITIATOR_DEPTH: 2;
    readonly RESPONDER_RESOURCES: 4;
    readonly CURRENT_STATE: 8;
    readonly STATE: 16;
    readonly PATH_MIG_STATE: 32;
    readonly DESTINATION_QPN: 64;
    readonly QKEY: 128;
    readonly SEND_PSN: 256;
    readonly RECEIVE_PSN: 512;
    readonly FLAGS: 1024;
    readonly ACCESS_FLAGS: 2048;
    readonly AV: 4096;
    readonly ALTERNATE_AV: 8192;
    readonly PORT_NUMBER: 16384;
    readonly PKEY_INDEX: 32768;
    readonly ACK_TIMEOUT: 65536;
    readonly RNR_NAK_TIMEOUT: 131072;
    readonly ERROR_RETRY_COUNT: 262144;
    readonly RNR_RETRY_COUNT: 524288;
};
declare const QpEventType: {
    readonly communicationEstablished: 1;
    readonly sendQueueDrained: 2;
    readonly fatal: 3;
    readonly peerLost: 4;
    readonly lastWqe: 5;
};
declare const QpFlag: {
    readonly SIGNAL_SENDS: 1;
    readonly MEMORY_MANAGEMENT: 2;
};
declare const QpMask: {
    readonly state: 1;
    readonly access: 2;
    readonly pkeyIndex: 4;
    readonly port: 8;
    readonly qkey: 16;
    readonly path: 32;
    readonly pathMtu: 64;
    readonly destinationQpn: 128;
    readonly receivePsn: 256;
    readonly responderResources: 512;
    readonly minRnrTimer: 1024;
    readonly ackTimeout: 2048;
    readonly retryCount: 4096;
    readonly rnrRetry: 8192;
    readonly sendPsn: 16384;
    readonly initiatorDepth: 32768;
    readonly currentState: 65536;
    readonly drainNotify: 131072;
    readonly rnrTimeout: 262144;
    readonly extensions: 524288;
};
declare const QpProviderIn: Struct<{
    readonly RingAddress: import("./layout-fields.js").Uint64Type;
    readonly RingBytes: import("./layout-fields.js").UintType;
    readonly SendEntries: import("./layout-fields.js").UintType;
    readonly SendStride: import("./layout-fields.js").UintType;
    readonly ReceiveEntries: import("./layout-fields.js").UintType;
    readonly ReceiveStride: import("./layout-fields.js").UintType;
    readonly Token: import("./layout-fields.js").UintType;
}>;
declare const QpProviderOut: Struct<{
    readonly Handle: import("./layout-fields.js").UintType;
    readonly Qpn: import("./layout-fields.js").UintType;
}>;
declare const QpState: {
    readonly RESET: 0;
    readonly INIT: 1;
    readonly RTR: 2;
    readonly RTS: 3;
    readonly SQD: 4;
    readonly SQERROR: 5;
    readonly ERROR: 6;
};
declare const QpStateOut: Struct<{
    readonly State: import("./layout-fields.js").UintType;
}>;
declare const QpType: {
    readonly RC: 0;
    readonly UC: 1;
    readonly UD: 3;
};
declare const RnrRetry: {
    readonly FOR_EVER: 7;
    readonly MOST: 6;
};
declare const SETTINGS_DEVICE = "\\\\.\\NetworkDirectSettings";
declare const SOCKADDR_BYTES = 28;
declare const SOFT_USER_LIBRARY = "networkdirect_uvp";
declare const STATISTICS_FORM = 1;
declare const STATISTICS_MOST = 1024;
declare const SettingsCode: Codes<{
    readonly SET_PKEYS: IoctlRow<2237480>;
    readonly AWAIT_CHANGE: IoctlRow<2237484>;
}>;
declare const SrqEventType: {
    readonly limit: 1;
    readonly fatal: 2;
};
declare const SrqProviderIn: Struct<{
    readonly RingAddress: import("./layout-fields.js").Uint64Type;
    readonly RingBytes: import("./layout-fields.js").UintType;
    readonly Entries: import("./layout-fields.js").UintType;
    readonly Stride: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const SrqProviderOut: Struct<{
    readonly Handle: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const Status: {
    NOT_INITIALIZED: 3221225635;
    SUCCESS: 0;
    ALERTED: 257;
    TIMEOUT: 258;
    PENDING: 259;
    MORE_ENTRIES: 261;
    NOTIFY_CLEANUP: 267;
    BUFFER_OVERFLOW: 2147483653;
    DEVICE_BUSY: 2147483665;
    NO_MORE_ENTRIES: 2147483674;
    UNSUCCESSFUL: 3221225473;
    NOT_IMPLEMENTED: 3221225474;
    ACCESS_VIOLATION: 3221225477;
    INVALID_HANDLE: 3221225480;
    INVALID_PARAMETER: 3221225485;
    NO_SUCH_DEVICE: 3221225486;
    INVALID_DEVICE_REQUEST: 3221225488;
    NO_MEMORY: 3221225495;
    ACCESS_DENIED: 3221225506;
    BUFFER_TOO_SMALL: 3221225507;
    INVALID_PARAMETER_MIX: 3221225520;
    OBJECT_NAME_INVALID: 3221225523;
    OBJECT_NAME_NOT_FOUND: 3221225524;
    OBJECT_NAME_COLLISION: 3221225525;
    DATA_OVERRUN: 3221225532;
    DATA_ERROR: 3221225534;
    INVALID_PORT_HANDLE: 3221225538;
    SHARING_VIOLATION: 3221225539;
    FILE_LOCK_CONFLICT: 3221225556;
    PROCEDURE_NOT_FOUND: 3221225594;
    INSUFFICIENT_RESOURCES: 3221225626;
    DEVICE_NOT_READY: 3221225635;
    IO_TIMEOUT: 3221225653;
    FILE_FORCED_CLOSED: 3221225654;
    NOT_SUPPORTED: 3221225659;
    BAD_NETWORK_PATH: 3221225662;
    TOO_MANY_COMMANDS: 3221225665;
    BAD_NETWORK_NAME: 3221225676;
    INTERNAL_ERROR: 3221225701;
    UNEXPECTED_IO_ERROR: 3221225705;
    INVALID_PARAMETER_1: 3221225711;
    INVALID_PARAMETER_2: 3221225712;
    INVALID_PARAMETER_3: 3221225713;
    INVALID_PARAMETER_4: 3221225714;
    INVALID_PARAMETER_5: 3221225715;
    INVALID_PARAMETER_6: 3221225716;
    INVALID_PARAMETER_7: 3221225717;
    INVALID_PARAMETER_8: 3221225718;
    INVALID_PARAMETER_9: 3221225719;
    INVALID_PARAMETER_10: 3221225720;
    CONNECTION_IN_USE: 3221225736;
    TOO_MANY_OPENED_FILES: 3221225759;
    CANCELED: 3221225760;
    FILE_DELETED: 3221225763;
    FILE_CLOSED: 3221225768;
    REMOTE_ERROR: 3221225789;
    INVALID_ADDRESS: 3221225793;
    INVALID_DEVICE_STATE: 3221225860;
    INVALID_BUFFER_SIZE: 3221225990;
    TOO_MANY_ADDRESSES: 3221225993;
    ADDRESS_ALREADY_EXISTS: 3221225994;
    CONNECTION_DISCONNECTED: 3221225996;
    NOT_FOUND: 3221226021;
    CONNECTION_REFUSED: 3221226038;
    ADDRESS_ALREADY_ASSOCIATED: 3221226040;
    ADDRESS_NOT_ASSOCIATED: 3221226041;
    CONNECTION_INVALID: 3221226042;
    CONNECTION_ACTIVE: 3221226043;
    NETWORK_UNREACHABLE: 3221226044;
    HOST_UNREACHABLE: 3221226045;
    REQUEST_ABORTED: 3221226048;
    CONNECTION_ABORTED: 3221226049;
    DRIVER_UNABLE_TO_LOAD: 3221226092;
    DEVICE_REMOVED: 3221226166;
    LOCAL_LENGTH: 3224895489;
    INVALIDATION_ERROR: 3224895490;
    LOCAL_OP_ERROR: 3224895491;
    LOCAL_PROTECTION_ERROR: 3224895492;
    WR_FLUSHED_ERROR: 3224895493;
    BIND_WINDOW_ERROR: 3224895494;
    REMOTE_ACCESS_ERROR: 3224895495;
    REMOTE_OP_ERROR: 3224895496;
    RNR_RETRY_ERROR: 3224895497;
    TIMEOUT_RETRY_ERROR: 3224895498;
    REMOTE_INVALID_REQUEST_ERROR: 3224895499;
    BAD_RESPONSE_ERROR: 3224895500;
    LOCAL_ACCESS_ERROR: 3224895501;
    UNKNOWN_ERROR: 3224895502;
};
declare const VERB_INFO = 8;
declare const WcStatus: {
    readonly SUCCESS: 0;
    readonly LOCAL_LENGTH_ERROR: 1;
    readonly LOCAL_OP_ERROR: 2;
    readonly LOCAL_PROTECTION_ERROR: 3;
    readonly FLUSHED: 4;
    readonly MW_BIND_ERROR: 5;
    readonly REMOTE_ACCESS_ERROR: 6;
    readonly REMOTE_OP_ERROR: 7;
    readonly RNR_RETRY_ERROR: 8;
    readonly TIMEOUT_RETRY_ERROR: 9;
    readonly REMOTE_INVALID_REQUEST: 10;
    readonly BAD_RESPONSE: 11;
    readonly LOCAL_ACCESS_ERROR: 12;
    readonly ERROR: 13;
};
declare const WvAccess: {
    readonly REMOTE_READ: 1;
    readonly REMOTE_WRITE: 10;
    readonly REMOTE_ATOMIC: 4;
    readonly LOCAL_WRITE: 8;
    readonly MW_BIND: 16;
    readonly ZERO_BASED: 32;
    readonly REMOTE_VIEW: 1073741824;
    readonly NON_CACHABLE: 2147483648;
    readonly ALL: 31;
};
declare const WvCapability: {
    readonly RESIZE_MAX_WR: 1;
    readonly BAD_PKEY_COUNTER: 2;
    readonly BAD_QKEY_COUNTER: 4;
    readonly PATH_MIGRATION: 16;
    readonly CHANGE_PHYSICAL_PORT: 32;
    readonly AH_PORT_CHECKING: 64;
    readonly QP_STATE_MODIFIER: 128;
    readonly SHUTDOWN_PORT: 256;
    readonly INIT_TYPE: 512;
    readonly PORT_ACTIVE_EVENT: 1024;
    readonly SYSTEM_IMAGE_GUID: 2048;
    readonly RC_RNR_NAK_GENERATION: 4096;
    readonly SRQ_RESIZE: 8192;
    readonly BATCH_NOTIFY_CQ: 16384;
    readonly MEM_MGT_EXTENSIONS: 2097152;
    readonly IN_ORDER_DMA: 268435456;
    readonly LOOPBACK: 536870912;
    readonly FIXED_CQ: 1073741824;
};
declare const WvDatagram: {
    readonly QKEY: 19088743;
    readonly MULTICAST_QPN: 16777215;
};
declare const WvDirect: {
    readonly WRITE: 0;
    readonly READ: 1;
    readonly FETCH_ADD: 2;
    readonly COMPARE_EXCHANGE: 3;
};
declare const WvDirectResult: {
    readonly DONE: 0;
    readonly NOT_MAPPED: 1;
    readonly REFUSED: 2;
    readonly UNKNOWN: 3;
};
declare const WvEpIds: import("./layout.js").List<bigint, bigint>;
declare const WvEvent: {
    readonly ERROR: 1;
    readonly STATE: 2;
    readonly ADDRESS: 4;
    readonly LINK_ADDRESS: 8;
    readonly PARTITION: 16;
    readonly MANAGEMENT: 32;
};
declare const WvGidList: import("./layout.js").List<Uint8Array<ArrayBufferLike>, Uint8Array<ArrayBufferLike>>;
declare const WvGuidEntries: import("./layout.js").List<bigint, bigint>;
declare const WvIoAhCreate: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-types.js").Struct<{
        readonly Id: import("./layout-fields.js").Uint64Type;
        readonly VerbInfo: import("./layout-fields.js").UintType;
        readonly Data: import("./layout-fields.js").UintType;
    }>;
    readonly AddressVector: import("./layout-types.js").Struct<{
        readonly NetworkRouteValid: import("./layout-fields.js").UintType;
        readonly Reserved1: import("./layout-types.js").ReservedType;
        readonly HopLimit: import("./layout-fields.js").UintType;
        readonly TrafficClass: import("./layout-fields.js").UintType;
        readonly FlowLabel: import("./layout-fields.js").UintType;
        readonly SGid: import("./layout-fields.js").BytesType;
        readonly DGid: import("./layout-fields.js").BytesType;
        readonly Reserved2: import("./layout-types.js").ReservedType;
        readonly DLid: import("./layout-fields.js").UintType;
        readonly ServiceLevel: import("./layout-fields.js").UintType;
        readonly SourcePathBits: import("./layout-fields.js").UintType;
        readonly StaticRate: import("./layout-fields.js").UintType;
        readonly PortNumber: import("./layout-fields.js").UintType;
    }>;
}>;
declare const WvIoAv: import("./layout-types.js").Struct<{
    readonly NetworkRouteValid: import("./layout-fields.js").UintType;
    readonly Reserved1: import("./layout-types.js").ReservedType;
    readonly HopLimit: import("./layout-fields.js").UintType;
    readonly TrafficClass: import("./layout-fields.js").UintType;
    readonly FlowLabel: import("./layout-fields.js").UintType;
    readonly SGid: import("./layout-fields.js").BytesType;
    readonly DGid: import("./layout-fields.js").BytesType;
    readonly Reserved2: import("./layout-types.js").ReservedType;
    readonly DLid: import("./layout-fields.js").UintType;
    readonly ServiceLevel: import("./layout-fields.js").UintType;
    readonly SourcePathBits: import("./layout-fields.js").UintType;
    readonly StaticRate: import("./layout-fields.js").UintType;
    readonly PortNumber: import("./layout-fields.js").UintType;
}>;
declare const WvIoConnectParam: import("./layout-types.js").Struct<{
    readonly ResponderResources: import("./layout-fields.js").Uint64Type;
    readonly InitiatorDepth: import("./layout-fields.js").Uint64Type;
    readonly RetryCount: import("./layout-fields.js").UintType;
    readonly RnrRetryCount: import("./layout-fields.js").UintType;
    readonly DataLength: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
    readonly Data: import("./layout-fields.js").BytesType;
}>;
declare const WvIoDatagramParam: import("./layout-types.js").Struct<{
    readonly AddressVector: import("./layout-types.js").Struct<{
        readonly NetworkRouteValid: import("./layout-fields.js").UintType;
        readonly Reserved1: import("./layout-types.js").ReservedType;
        readonly HopLimit: import("./layout-fields.js").UintType;
        readonly TrafficClass: import("./layout-fields.js").UintType;
        readonly FlowLabel: import("./layout-fields.js").UintType;
        readonly SGid: import("./layout-fields.js").BytesType;
        readonly DGid: import("./layout-fields.js").BytesType;
        readonly Reserved2: import("./layout-types.js").ReservedType;
        readonly DLid: import("./layout-fields.js").UintType;
        readonly ServiceLevel: import("./layout-fields.js").UintType;
        readonly SourcePathBits: import("./layout-fields.js").UintType;
        readonly StaticRate: import("./layout-fields.js").UintType;
        readonly PortNumber: import("./layout-fields.js").UintType;
    }>;
    readonly Qpn: import("./layout-fields.js").UintType;
    readonly Qkey: import("./layout-fields.js").UintType;
    readonly DataLength: import("./layout-fields.js").UintType;
    readonly SidrStatus: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
    readonly Data: import("./layout-fields.js").BytesType;
}>;
declare const WvIoDeviceAddress: import("./layout-types.js").Struct<{
    readonly DeviceGuid: import("./layout-fields.js").Uint64Type;
    readonly Pkey: import("./layout-fields.js").UintType;
    readonly PortNumber: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoDeviceAttributes: import("./layout-types.js").Struct<{
    readonly FwVersion: import("./layout-fields.js").Uint64Type;
    readonly NodeGuid: import("./layout-fields.js").Uint64Type;
    readonly SystemImageGuid: import("./layout-fields.js").Uint64Type;
    readonly VendorId: import("./layout-fields.js").UintType;
    readonly VendorPartId: import("./layout-fields.js").UintType;
    readonly HwVersion: import("./layout-fields.js").UintType;
    readonly CapabilityFlags: import("./layout-fields.js").UintType;
    readonly AtomicCapability: import("./layout-fields.js").UintType;
    readonly PageSizeCapabilityFlags: import("./layout-fields.js").UintType;
    readonly MaxMrSize: import("./layout-fields.js").Uint64Type;
    readonly MaxQp: import("./layout-fields.js").UintType;
    readonly MaxQpWr: import("./layout-fields.js").UintType;
    readonly MaxSge: import("./layout-fields.js").UintType;
    readonly MaxCq: import("./layout-fields.js").UintType;
    readonly MaxCqEntries: import("./layout-fields.js").UintType;
    readonly MaxMr: import("./layout-fields.js").UintType;
    readonly MaxPd: import("./layout-fields.js").UintType;
    readonly MaxQpResponderResources: import("./layout-fields.js").UintType;
    readonly MaxResponderResources: import("./layout-fields.js").UintType;
    readonly MaxQpInitiatorDepth: import("./layout-fields.js").UintType;
    readonly MaxInlineSend: import("./layout-fields.js").UintType;
    readonly MaxMw: import("./layout-fields.js").UintType;
    readonly MaxMulticast: import("./layout-fields.js").UintType;
    readonly MaxQpAttach: import("./layout-fields.js").UintType;
    readonly MaxMulticastQp: import("./layout-fields.js").UintType;
    readonly MaxAh: import("./layout-fields.js").UintType;
    readonly MaxFmr: import("./layout-fields.js").UintType;
    readonly MaxMapPerFmr: import("./layout-fields.js").UintType;
    readonly MaxSrq: import("./layout-fields.js").UintType;
    readonly MaxSrqWr: import("./layout-fields.js").UintType;
    readonly MaxSrqSge: import("./layout-fields.js").UintType;
    readonly MaxPkeys: import("./layout-fields.js").UintType;
    readonly DeviceType: import("./layout-fields.js").UintType;
    readonly LocalAckDelay: import("./layout-fields.js").UintType;
    readonly PhysPortCount: import("./layout-fields.js").UintType;
    readonly MaxReadSge: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoDeviceOpen: import("./layout-types.js").Struct<{
    readonly Guid: import("./layout-fields.js").Uint64Type;
    readonly VerbInfo: import("./layout-fields.js").UintType;
    readonly Data: import("./layout-fields.js").UintType;
}>;
declare const WvIoDevicePortQuery: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly PortNumber: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoEpAccept: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly QpId: import("./layout-fields.js").Uint64Type;
    readonly Param: import("./layout-types.js").Struct<{
        readonly ResponderResources: import("./layout-fields.js").Uint64Type;
        readonly InitiatorDepth: import("./layout-fields.js").Uint64Type;
        readonly RetryCount: import("./layout-fields.js").UintType;
        readonly RnrRetryCount: import("./layout-fields.js").UintType;
        readonly DataLength: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
        readonly Data: import("./layout-fields.js").BytesType;
    }>;
}>;
declare const WvIoEpAttributes: import("./layout-types.js").Struct<{
    readonly LocalAddress: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly PeerAddress: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly Device: import("./layout-types.js").Struct<{
        readonly DeviceGuid: import("./layout-fields.js").Uint64Type;
        readonly Pkey: import("./layout-fields.js").UintType;
        readonly PortNumber: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly Param: import("./layout-types.js").Struct<{
        readonly Connect: import("./layout-types.js").Struct<{
            readonly ResponderResources: import("./layout-fields.js").Uint64Type;
            readonly InitiatorDepth: import("./layout-fields.js").Uint64Type;
            readonly RetryCount: import("./layout-fields.js").UintType;
            readonly RnrRetryCount: import("./layout-fields.js").UintType;
            readonly DataLength: import("./layout-fields.js").UintType;
            readonly Reserved: import("./layout-types.js").ReservedType;
            readonly Data: import("./layout-fields.js").BytesType;
        }>;
        readonly Backlog: import("./layout-fields.js").Uint64Type;
    }>;
}>;
declare const WvIoEpBind: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly Address: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly Device: import("./layout-types.js").Struct<{
        readonly DeviceGuid: import("./layout-fields.js").Uint64Type;
        readonly Pkey: import("./layout-fields.js").UintType;
        readonly PortNumber: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
}>;
declare const WvIoEpConnect: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly QpId: import("./layout-fields.js").Uint64Type;
    readonly PeerAddress: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly Param: import("./layout-types.js").Struct<{
        readonly ResponderResources: import("./layout-fields.js").Uint64Type;
        readonly InitiatorDepth: import("./layout-fields.js").Uint64Type;
        readonly RetryCount: import("./layout-fields.js").UintType;
        readonly RnrRetryCount: import("./layout-fields.js").UintType;
        readonly DataLength: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
        readonly Data: import("./layout-fields.js").BytesType;
    }>;
}>;
declare const WvIoEpCreate: import("./layout-types.js").Struct<{
    readonly EpType: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoEpDatagramAccept: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly QpId: import("./layout-fields.js").Uint64Type;
    readonly Param: import("./layout-types.js").Struct<{
        readonly AddressVector: import("./layout-types.js").Struct<{
            readonly NetworkRouteValid: import("./layout-fields.js").UintType;
            readonly Reserved1: import("./layout-types.js").ReservedType;
            readonly HopLimit: import("./layout-fields.js").UintType;
            readonly TrafficClass: import("./layout-fields.js").UintType;
            readonly FlowLabel: import("./layout-fields.js").UintType;
            readonly SGid: import("./layout-fields.js").BytesType;
            readonly DGid: import("./layout-fields.js").BytesType;
            readonly Reserved2: import("./layout-types.js").ReservedType;
            readonly DLid: import("./layout-fields.js").UintType;
            readonly ServiceLevel: import("./layout-fields.js").UintType;
            readonly SourcePathBits: import("./layout-fields.js").UintType;
            readonly StaticRate: import("./layout-fields.js").UintType;
            readonly PortNumber: import("./layout-fields.js").UintType;
        }>;
        readonly Qpn: import("./layout-fields.js").UintType;
        readonly Qkey: import("./layout-fields.js").UintType;
        readonly DataLength: import("./layout-fields.js").UintType;
        readonly SidrStatus: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
        readonly Data: import("./layout-fields.js").BytesType;
    }>;
}>;
declare const WvIoEpDatagramAttributes: import("./layout-types.js").Struct<{
    readonly LocalAddress: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly PeerAddress: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly Device: import("./layout-types.js").Struct<{
        readonly DeviceGuid: import("./layout-fields.js").Uint64Type;
        readonly Pkey: import("./layout-fields.js").UintType;
        readonly PortNumber: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly Backlog: import("./layout-fields.js").Uint64Type;
    readonly Param: import("./layout-types.js").Struct<{
        readonly AddressVector: import("./layout-types.js").Struct<{
            readonly NetworkRouteValid: import("./layout-fields.js").UintType;
            readonly Reserved1: import("./layout-types.js").ReservedType;
            readonly HopLimit: import("./layout-fields.js").UintType;
            readonly TrafficClass: import("./layout-fields.js").UintType;
            readonly FlowLabel: import("./layout-fields.js").UintType;
            readonly SGid: import("./layout-fields.js").BytesType;
            readonly DGid: import("./layout-fields.js").BytesType;
            readonly Reserved2: import("./layout-types.js").ReservedType;
            readonly DLid: import("./layout-fields.js").UintType;
            readonly ServiceLevel: import("./layout-fields.js").UintType;
            readonly SourcePathBits: import("./layout-fields.js").UintType;
            readonly StaticRate: import("./layout-fields.js").UintType;
            readonly PortNumber: import("./layout-fields.js").UintType;
        }>;
        readonly Qpn: import("./layout-fields.js").UintType;
        readonly Qkey: import("./layout-fields.js").UintType;
        readonly DataLength: import("./layout-fields.js").UintType;
        readonly SidrStatus: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
        readonly Data: import("./layout-fields.js").BytesType;
    }>;
}>;
declare const WvIoEpDatagramQuery: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly PeerAddress: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
}>;
declare const WvIoEpDisconnect: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly QpId: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoEpGetRequest: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly EpId: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoEpListen: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly Backlog: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoEpLookup: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly PeerAddress: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
    readonly DataLength: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
    readonly Data: import("./layout-fields.js").BytesType;
}>;
declare const WvIoEpMulticast: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly Address: import("./layout-types.js").Struct<{
        readonly SockAddr: import("./layout-fields.js").BytesType;
        readonly Reserved: import("./layout-types.js").ReservedType;
    }>;
}>;
declare const WvIoEpParam: import("./layout-types.js").Struct<{
    readonly Connect: import("./layout-types.js").Struct<{
        readonly ResponderResources: import("./layout-fields.js").Uint64Type;
        readonly InitiatorDepth: import("./layout-fields.js").Uint64Type;
        readonly RetryCount: import("./layout-fields.js").UintType;
        readonly RnrRetryCount: import("./layout-fields.js").UintType;
        readonly DataLength: import("./layout-fields.js").UintType;
        readonly Reserved: import("./layout-types.js").ReservedType;
        readonly Data: import("./layout-fields.js").BytesType;
    }>;
    readonly Backlog: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoEpRoute: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-types.js").Struct<{
        readonly Id: import("./layout-fields.js").Uint64Type;
        readonly VerbInfo: import("./layout-fields.js").UintType;
        readonly Data: import("./layout-fields.js").UintType;
    }>;
    readonly Path: import("./layout-types.js").Struct<{
        readonly service_id: import("./layout-fields.js").Uint64Type;
        readonly dgid: import("./layout-fields.js").BytesType;
        readonly sgid: import("./layout-fields.js").BytesType;
        readonly dlid: import("./layout-fields.js").UintType;
        readonly slid: import("./layout-fields.js").UintType;
        readonly hop_flow_raw: import("./layout-fields.js").UintType;
        readonly tclass: import("./layout-fields.js").UintType;
        readonly num_path: import("./layout-fields.js").UintType;
        readonly pkey: import("./layout-fields.js").UintType;
        readonly qos_class_sl: import("./layout-fields.js").UintType;
        readonly mtu: import("./layout-fields.js").UintType;
        readonly rate: import("./layout-fields.js").UintType;
        readonly pkt_life: import("./layout-fields.js").UintType;
        readonly preference: import("./layout-fields.js").UintType;
        readonly resv2: import("./layout-types.js").ReservedType;
    }>;
}>;
declare const WvIoEvent: import("./layout-types.js").Struct<{
    readonly Status: import("./layout-fields.js").UintType;
    readonly Type: import("./layout-fields.js").UintType;
    readonly PortNumber: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoEventFlags: import("./layout-types.js").Struct<{
    readonly Flags: import("./layout-fields.js").UintType;
}>;
declare const WvIoGid: import("./layout-types.js").Struct<{
    readonly Raw: import("./layout-fields.js").BytesType;
}>;
declare const WvIoGuid: import("./layout-types.js").Struct<{
    readonly Guid: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoGuidList: import("./layout-types.js").Struct<{
    readonly Count: import("./layout-fields.js").Uint64Type;
    readonly Guid: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoId: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly VerbInfo: import("./layout-fields.js").UintType;
    readonly Data: import("./layout-fields.js").UintType;
}>;
declare const WvIoMemoryKeys: import("./layout-types.js").Struct<{
    readonly Lkey: import("./layout-fields.js").UintType;
    readonly Rkey: import("./layout-fields.js").UintType;
}>;
declare const WvIoMemoryRegister: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly Address: import("./layout-fields.js").Uint64Type;
    readonly BufferLength: import("./layout-fields.js").Uint64Type;
    readonly AccessFlags: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoMwKey: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
    readonly VerbInfo: import("./layout-fields.js").UintType;
    readonly Rkey: import("./layout-fields.js").UintType;
}>;
declare const WvIoObject: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-fields.js").Uint64Type;
}>;
declare const WvIoPortAttributes: import("./layout-types.js").Struct<{
    readonly PortCabilityFlags: import("./layout-fields.js").UintType;
    readonly State: import("./layout-fields.js").UintType;
    readonly MaxMtu: import("./layout-fields.js").UintType;
    readonly ActiveMtu: import("./layout-fields.js").UintType;
    readonly GidTableLength: import("./layout-fields.js").UintType;
    readonly MaxMessageSize: import("./layout-fields.js").UintType;
    readonly BadPkeyCounter: import("./layout-fields.js").UintType;
    readonly QkeyViolationCounter: import("./layout-fields.js").UintType;
    readonly PkeyTableLength: import("./layout-fields.js").UintType;
    readonly Lid: import("./layout-fields.js").UintType;
    readonly SmLid: import("./layout-fields.js").UintType;
    readonly Lmc: import("./layout-fields.js").UintType;
    readonly MaxVls: import("./layout-fields.js").UintType;
    readonly SmSl: import("./layout-fields.js").UintType;
    readonly SubnetTimeout: import("./layout-fields.js").UintType;
    readonly InitTypeReply: import("./layout-fields.js").UintType;
    readonly ActiveWidth: import("./layout-fields.js").UintType;
    readonly ActiveSpeed: import("./layout-fields.js").UintType;
    readonly PhysicalState: import("./layout-fields.js").UintType;
    readonly Transport: import("./layout-fields.js").UintType;
    readonly ExtActiveSpeed: import("./layout-fields.js").UintType;
    readonly LinkEncoding: import("./layout-fields.js").UintType;
    readonly Pad: import("./layout-types.js").ReservedType;
}>;
declare const WvIoQpAttributes: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-types.js").Struct<{
        readonly Id: import("./layout-fields.js").Uint64Type;
        readonly VerbInfo: import("./layout-fields.js").UintType;
        readonly Data: import("./layout-fields.js").UintType;
    }>;
    readonly SendDepth: import("./layout-fields.js").UintType;
    readonly SendSge: import("./layout-fields.js").UintType;
    readonly ReceiveDepth: import("./layout-fields.js").UintType;
    readonly ReceiveSge: import("./layout-fields.js").UintType;
    readonly MaxInlineSend: import("./layout-fields.js").UintType;
    readonly InitiatorDepth: import("./layout-fields.js").UintType;
    readonly ResponderResources: import("./layout-fields.js").UintType;
    readonly Options: import("./layout-fields.js").UintType;
    readonly QpType: import("./layout-fields.js").UintType;
    readonly CurrentQpState: import("./layout-fields.js").UintType;
    readonly QpState: import("./layout-fields.js").UintType;
    readonly ApmState: import("./layout-fields.js").UintType;
    readonly Qpn: import("./layout-fields.js").UintType;
    readonly DestinationQpn: import("./layout-fields.js").UintType;
    readonly Qkey: import("./layout-fields.js").UintType;
    readonly SendPsn: import("./layout-fields.js").UintType;
    readonly ReceivePsn: import("./layout-fields.js").UintType;
    readonly AddressVector: import("./layout-types.js").Struct<{
        readonly NetworkRouteValid: import("./layout-fields.js").UintType;
        readonly Reserved1: import("./layout-types.js").ReservedType;
        readonly HopLimit: import("./layout-fields.js").UintType;
        readonly TrafficClass: import("./layout-fields.js").UintType;
        readonly FlowLabel: import("./layout-fields.js").UintType;
        readonly SGid: import("./layout-fields.js").BytesType;
        readonly DGid: import("./layout-fields.js").BytesType;
        readonly Reserved2: import("./layout-types.js").ReservedType;
        readonly DLid: import("./layout-fields.js").UintType;
        readonly ServiceLevel: import("./layout-fields.js").UintType;
        readonly SourcePathBits: import("./layout-fields.js").UintType;
        readonly StaticRate: import("./layout-fields.js").UintType;
        readonly PortNumber: import("./layout-fields.js").UintType;
    }>;
    readonly AlternateAddressVector: import("./layout-types.js").Struct<{
        readonly NetworkRouteValid: import("./layout-fields.js").UintType;
        readonly Reserved1: import("./layout-types.js").ReservedType;
        readonly HopLimit: import("./layout-fields.js").UintType;
        readonly TrafficClass: import("./layout-fields.js").UintType;
        readonly FlowLabel: import("./layout-fields.js").UintType;
        readonly SGid: import("./layout-fields.js").BytesType;
        readonly DGid: import("./layout-fields.js").BytesType;
        readonly Reserved2: import("./layout-types.js").ReservedType;
        readonly DLid: import("./layout-fields.js").UintType;
        readonly ServiceLevel: import("./layout-fields.js").UintType;
        readonly SourcePathBits: import("./layout-fields.js").UintType;
        readonly StaticRate: import("./layout-fields.js").UintType;
        readonly PortNumber: import("./layout-fields.js").UintType;
    }>;
    readonly PathMtu: import("./layout-fields.js").UintType;
    readonly AlternatePathMtu: import("./layout-fields.js").UintType;
    readonly PkeyIndex: import("./layout-fields.js").UintType;
    readonly AlternatePkeyIndex: import("./layout-fields.js").UintType;
    readonly LocalAckTimeout: import("./layout-fields.js").UintType;
    readonly AlternateLocalAckTimeout: import("./layout-fields.js").UintType;
    readonly RnrNakTimeout: import("./layout-fields.js").UintType;
    readonly SequenceErrorRetryCount: import("./layout-fields.js").UintType;
    readonly RnrRetryCount: import("./layout-fields.js").UintType;
    readonly AccessFlags: import("./layout-fields.js").UintType;
    readonly QpFlags: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoQpCreate: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-types.js").Struct<{
        readonly Id: import("./layout-fields.js").Uint64Type;
        readonly VerbInfo: import("./layout-fields.js").UintType;
        readonly Data: import("./layout-fields.js").UintType;
    }>;
    readonly SendCqId: import("./layout-fields.js").Uint64Type;
    readonly ReceiveCqId: import("./layout-fields.js").Uint64Type;
    readonly SrqId: import("./layout-fields.js").Uint64Type;
    readonly SendDepth: import("./layout-fields.js").UintType;
    readonly SendSge: import("./layout-fields.js").UintType;
    readonly ReceiveDepth: import("./layout-fields.js").UintType;
    readonly ReceiveSge: import("./layout-fields.js").UintType;
    readonly MaxInlineSend: import("./layout-fields.js").UintType;
    readonly InitiatorDepth: import("./layout-fields.js").UintType;
    readonly ResponderResources: import("./layout-fields.js").UintType;
    readonly QpType: import("./layout-fields.js").UintType;
    readonly QpFlags: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoQpMulticast: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-types.js").Struct<{
        readonly Id: import("./layout-fields.js").Uint64Type;
        readonly VerbInfo: import("./layout-fields.js").UintType;
        readonly Data: import("./layout-fields.js").UintType;
    }>;
    readonly Gid: import("./layout-types.js").Struct<{
        readonly Raw: import("./layout-fields.js").BytesType;
    }>;
}>;
declare const WvIoSockaddr: import("./layout-types.js").Struct<{
    readonly SaFamily: import("./layout-fields.js").UintType;
    readonly SaData: import("./layout-fields.js").BytesType;
}>;
declare const WvIoSockaddrData: import("./layout-types.js").Struct<{
    readonly SockAddr: import("./layout-fields.js").BytesType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvIoSockaddrIn6: import("./layout-types.js").Struct<{
    readonly Sin6Family: import("./layout-fields.js").UintType;
    readonly Sin6Port: import("./layout-fields.js").UintType;
    readonly Sin6FlowInfo: import("./layout-fields.js").UintType;
    readonly Sin6Addr: import("./layout-fields.js").BytesType;
    readonly Sin6ScopeId: import("./layout-fields.js").UintType;
}>;
declare const WvIoSockaddrIn: import("./layout-types.js").Struct<{
    readonly SinFamily: import("./layout-fields.js").UintType;
    readonly SinPort: import("./layout-fields.js").UintType;
    readonly SinAddr: import("./layout-fields.js").UintType;
    readonly SinZero: import("./layout-types.js").ReservedType;
}>;
declare const WvIoSrqAttributes: import("./layout-types.js").Struct<{
    readonly Id: import("./layout-types.js").Struct<{
        readonly Id: import("./layout-fields.js").Uint64Type;
        readonly VerbInfo: import("./layout-fields.js").UintType;
        readonly Data: import("./layout-fields.js").UintType;
    }>;
    readonly MaxWr: import("./layout-fields.js").UintType;
    readonly MaxSge: import("./layout-fields.js").UintType;
    readonly SrqLimit: import("./layout-fields.js").UintType;
    readonly Reserved: import("./layout-types.js").ReservedType;
}>;
declare const WvOpcode: {
    readonly SEND: 0;
    readonly RDMA_WRITE: 1;
    readonly RDMA_READ: 2;
    readonly COMPARE_EXCHANGE: 3;
    readonly FETCH_ADD: 4;
    readonly BIND_WINDOW: 5;
    readonly INVALIDATE: 6;
    readonly FAST_REGISTER: 7;
    readonly RECEIVE: 128;
    readonly RECEIVE_RDMA_WRITE: 129;
};
declare const WvPkeyList: import("./layout.js").List<number, number>;
declare const WvSend: {
    readonly IMMEDIATE: 1;
    readonly FENCE: 2;
    readonly SIGNALED: 4;
    readonly SOLICITED: 8;
    readonly INLINE: 16;
};
declare const WvWc: {
    readonly IMMEDIATE: 1;
    readonly INVALIDATED: 2;
    readonly GRH_VALID: 4;
    readonly SOLICITED: 8;
};
declare const cmOptionsSchema: OptionsSchema<CmOptions>;
declare const countersTable: readonly NamedIoctlRow[];
declare const createConnection: typeof connect;
declare const driversTable: readonly NamedIoctlRow[];
declare const epAttributesRoom: number;
declare const faultsTable: readonly NamedIoctlRow[];
declare const hcaFileTable: readonly NamedIoctlRow[];
declare const ibatIoctls: Readonly<Record<IbatName, IoctlRow>>;
declare const ibatTable: readonly NamedIoctlRow[];
declare const ioctlTable: readonly NamedIoctlRow[];
declare const ioctls: Readonly<Record<IoctlName, IoctlRow>>;
declare const kernelOptionsSchema: OptionsSchema<KernelOptions>;
declare const mandatoryUserVerbs: readonly [
    "postSend",
    "postReceive",
    "pollCq",
    "rearmCq",
    "ndModifyQp",
    "preCreateQp",
    "pinMemory",
    "unpinMemory"
];
declare const objectVerbs: {
    readonly ciGetCaAttributes: typeof attributes.ciGetCaAttributes;
    readonly ciGetPortAttributes: typeof attributes.ciGetPortAttributes;
    readonly ciQueryGids: typeof attributes.ciQueryGids;
    readonly ciQueryPkeys: typeof attributes.ciQueryPkeys;
    readonly ciQueryCa: typeof attributes.ciQueryCa;
    readonly ciQueryPort: typeof attributes.ciQueryPort;
    readonly ciModifyCa: typeof attributes.ciModifyCa;
    readonly ciModifyPort: typeof attributes.ciModifyPort;
    readonly ciModifyPkeys: typeof attributes.ciModifyPkeys;
    readonly ciGetCaFatalEvent: typeof events.ciGetCaFatalEvent;
    readonly ciGetCaPortEvent: typeof events.ciGetCaPortEvent;
    readonly ciCancelCaEvents: typeof events.ciCancelCaEvents;
    readonly ciGetQpEvent: typeof events.ciGetQpEvent;
    readonly ciCancelQpEvents: typeof events.ciCancelQpEvents;
    readonly ciQueryQp: typeof queues.ciQueryQp;
    readonly ciGetCqEvent: typeof queues.ciGetCqEvent;
    readonly ciCancelCqEvents: typeof queues.ciCancelCqEvents;
    readonly ciQuerySrq: typeof srqs.ciQuerySrq;
    readonly ciGetSrqEvent: typeof srqs.ciGetSrqEvent;
    readonly ciCancelSrqEvents: typeof srqs.ciCancelSrqEvents;
    readonly ciQueryAv: typeof ciQueryAv;
    readonly ciAttachMcast: typeof ciAttachMcast;
    readonly ciDetachMcast: typeof ciDetachMcast;
};
declare const rcOptionsSchema: OptionsSchema<RcOptions>;
declare const settingsTable: readonly NamedIoctlRow[];
declare const u16: UintType;
declare const u16be: UintType;
declare const u24be: UintType;
declare const u32: UintType;
declare const u32be: UintType;
declare const u64: Uint64Type;
declare const u64be: Uint64Type;
declare const u8: UintType;
declare function acceptEndpoint(listen: INDListen, connector: INDConnector, endpoint: INDEndpoint, options?: NdAcceptingOptions): Promise<Uint8Array>;
declare function acceptQueuePair(adapter: IND2Adapter, listener: IND2Listener, queuePair: IND2QueuePair, options?: Nd2AcceptingOptions): Promise<Nd2Connected>;
declare function addressOf(gid: Uint8Array): string;
declare function addressOfGid(gid: Uint8Array, scopeId?: number): string;
declare function allocate(bytes: number, options: {
    readonly shared: true;
}): Uint8Array<SharedArrayBuffer>;
declare function allocate(bytes: number, options: {
    readonly shared: true;
}): Uint8Array<SharedArrayBuffer>;
declare function allocate(bytes: number, options: {
    readonly shared: true;
}): Uint8Array<SharedArrayBuffer>;
declare function allocate(bytes: number, options?: AllocateOptions): Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer>;
declare function allocate(bytes: number, options?: AllocateOptions): Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer>;
declare function allocate(bytes: number, options?: AllocateOptions): Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer>;
declare function allocate(bytes: number, options?: {
    readonly shared?: false | undefined;
}): Uint8Array<ArrayBuffer>;
declare function allocate(bytes: number, options?: {
    readonly shared?: false | undefined;
}): Uint8Array<ArrayBuffer>;
declare function allocate(bytes: number, options?: {
    readonly shared?: false | undefined;
}): Uint8Array<ArrayBuffer>;
declare function asAddress(address: unknown): bigint | undefined;
declare function bits(width: number): UintType;
declare function bytes(size: number, align?: number): BytesType;
declare function checkSocketAddress({ family, address, port }: SocketAddress): void;
declare function checkedSignal<O extends WaitOptions>(options: O): O;
declare function ciAttachMcast(qp: IbQp, gid: Uint8Array, lid: number, irp: Irp): number;
declare function ciCancelCaEvents(ca: IbCa): void;
declare function ciCancelCqEvents(cq: IbCq): void;
declare function ciCancelQpEvents(qp: IbQp): void;
declare function ciCancelSrqEvents(srq: IbSrq): void;
declare function ciDetachMcast(qp: IbQp, gid: Uint8Array, lid: number, irp: Irp): number;
declare function ciGetCaAttributes(ca: IbCa, irp: Irp<IbCaAttributes>): number;
declare function ciGetCaFatalEvent(ca: IbCa, irp: Irp): number;
declare function ciGetCaPortEvent(ca: IbCa, portNumber: number, irp: Irp): number;
declare function ciGetCqEvent(cq: IbCq, type: number, irp: Irp): number;
declare function ciGetPortAttributes(ca: IbCa, portNumber: number, irp: Irp<IbPortAttributes>): number;
declare function ciGetQpEvent(qp: IbQp, irp: Irp): number;
declare function ciGetSrqEvent(srq: IbSrq, irp: Irp): number;
declare function ciModifyCa(ca: IbCa, flags: number, modify: Partial<IbModifyCa>, irp: Irp): number;
declare function ciModifyPkeys(ca: IbCa, portNumber: number, pkeys: readonly number[], irp: Irp): number;
declare function ciModifyPort(ca: IbCa, portNumber: number, flags: number, modify: Partial<IbModifyPort>, irp: Irp): number;
declare function ciQueryAv(av: IbAv, irp: Irp<IbAddressVector>): number;
declare function ciQueryCa(ca: IbCa, attr: Uint8Array, irp: Irp): number;
declare function ciQueryGids(ca: IbCa, portNumber: number, irp: Irp<readonly Uint8Array[]>): number;
declare function ciQueryPkeys(ca: IbCa, portNumber: number, irp: Irp<readonly number[]>): number;
declare function ciQueryPort(ca: IbCa, portNumber: number, attr: Uint8Array, irp: Irp): number;
declare function ciQueryQp(qp: IbQp, irp: Irp<QpAttributeValues>): number;
declare function ciQuerySrq(srq: IbSrq, irp: Irp<IbSrqAttributes>): number;
declare function claimLocalName(name: string): LocalNameClaim;
declare function claimLocalName(name: string): LocalNameClaim;
declare function claimLocalName(name: string): LocalNameClaim;
declare function connect(port: number | ConnectOptions, host?: string | ConnectListener, options?: Omit<ConnectOptions, 'port' | 'host' | 'name'> | ConnectListener, listener?: ConnectListener): Socket;
declare function connectChannel(port: number | ConnectChannelParameters, host?: string, options?: ConnectChannelOptions): Promise<Channel>;
declare function connectEndpoint(connector: INDConnector, endpoint: INDEndpoint, address: NdAddress, options?: NdConnectingOptions): Promise<Uint8Array>;
declare function connectQueuePair(adapter: IND2Adapter, queuePair: IND2QueuePair, address: NdAddress, options?: Nd2ConnectingOptions): Promise<Nd2Connected>;
declare function createChannelServer(options?: ServerOptions | ((channel: Channel) => void), handler?: (channel: Channel) => void): Server;
declare function createServer(options?: ServerOptions | ((socket: Socket) => void), handler?: (socket: Socket) => void): Server;
declare function createSharedMap(options: SharedMapOptions & {
    readonly codec: 'string';
}): Promise<SharedMap<string>>;
declare function createSharedMap(options: SharedMapOptions & {
    readonly codec?: 'bytes' | undefined;
}): Promise<SharedMap<Uint8Array | string, Buffer>>;
declare function createSharedMap<V = unknown>(options: SharedMapOptions & {
    readonly codec: 'json' | 'v8' | Codec<V>;
}): Promise<SharedMap<V>>;
declare function decodeOptionalSockaddr(bytes: Uint8Array): SocketAddress | undefined;
declare function decodeProviderData<F extends Fields>(whole: Uint8Array, head: {
    readonly size: number;
    readonly name: string;
}, type: Struct<F>): FieldsValue<F>;
declare function decodeSockaddr(bytes: Uint8Array): SocketAddress;
declare function encodeSockaddr(address: SocketAddress): Uint8Array;
declare function firstCompletion(cqs: readonly IWVCompletionQueue[], options?: WaitOptions): Promise<{
    cq: IWVCompletionQueue;
    completion: WvCompletion;
}>;
declare function firstResult(queues: readonly IND2CompletionQueue[], options?: WaitOptions): Promise<{
    queue: IND2CompletionQueue;
    result: Nd2Result;
}>;
declare function firstResult(queues: readonly INDCompletionQueue[], options?: WaitOptions): Promise<{
    queue: INDCompletionQueue;
    result: NdResult;
}>;
declare function firstTaken<Q extends Notifying, R>(queues: readonly Q[], take: (queue: Q) => R | undefined, options: WaitOptions, name: string): Promise<{
    queue: Q;
    result: R;
}>;
declare function formatSocketAddress(address: SocketAddress): string;
declare function gidOf(address: string | Uint8Array): Uint8Array;
declare function gidOfAddress(address: string): Uint8Array;
declare function gidOfSockaddr(bytes: Uint8Array): {
    gid: Uint8Array;
    port: number;
    scopeId: number;
};
declare function guidText(guid: bigint): string;
declare function hcaFileName(guid: bigint): string;
declare function injectDeviceFault(guid: bigint, fault: DeviceFault, options?: KernelOptionsInput): void;
declare function ioctlName(code: number): string;
declare function ioctlRow(code: number): NamedIoctlRow | undefined;
declare function isIPv4(text: string): boolean;
declare function isMulticastGid(gid: Uint8Array): boolean;
declare function layouts(code: MadeCode, refusals?: Refusals): Layouts;
declare function list<V, I>(type: FieldType<V, I>): List<V, I>;
declare function loadDriver(file: string | URL, options?: LoadDriverOptions): Overlapped<LoadedDriver>;
declare function ndCheckAddress(address: NdAddress): void;
declare function ndCleanup(): void;
declare function ndFlushProviders(): void;
declare function ndNotifyAddressListChange(): Overlapped<void>;
declare function ndOpenAdapter(address: NdAddress, options?: NdAdapterOptions): IND2Adapter;
declare function ndOpenV1Adapter(address: NdAddress, options?: NdAdapterOptions): INDAdapter;
declare function ndProviderOf(adapter: IND2Adapter): NdProviderEntry | undefined;
declare function ndQueryAddressList(flags?: number): SocketAddress[];
declare function ndResolveAddress(remote: NdAddress): SocketAddress;
declare function ndStartup(options?: NetworkDirectOptions): void;
declare function nextCompletion(cq: IWVCompletionQueue, options?: WaitOptions): Promise<WvCompletion>;
declare function nextResult(queue: IND2CompletionQueue, options?: WaitOptions): Promise<Nd2Result>;
declare function nextResult(queue: INDCompletionQueue, options?: WaitOptions): Promise<NdResult>;
declare function openDeviceFile(name: string, options?: KernelOptionsInput): DeviceFile;
declare function openNetworkDirect(options?: NetworkDirectOptions): INDProvider;
declare function openNetworkDirect2(options?: NetworkDirectOptions): IND2Provider;
declare function openProvider(options?: KernelOptionsInput): IWVProvider;
declare function openSharedMap(options: OpenSharedMapOptions & {
    readonly codec: 'string';
}): Promise<SharedMapView<string>>;
declare function openSharedMap(options: OpenSharedMapOptions & {
    readonly codec?: 'bytes' | undefined;
}): Promise<SharedMapView<Uint8Array | string, Buffer>>;
declare function openSharedMap<V = unknown>(options: OpenSharedMapOptions & {
    readonly codec: 'json' | 'v8' | Codec<V>;
}): Promise<SharedMapView<V>>;
declare function packed<const F extends Fields>(name: string, table: F): Struct<F>;
declare function parseGrh(bytes: Uint8Array): WvGrh;
declare function parseSocketAddress(text: string, defaultPort?: number): SocketAddress;
declare function portsOfLocalName(name: string): number[];
declare function portsOfLocalName(name: string): number[];
declare function portsOfLocalName(name: string): number[];
declare function providerBytes(whole: Uint8Array, head: {
    readonly size: number;
    readonly name: string;
}): Uint8Array;
declare function readCounters(options?: KernelOptionsInput): Counters;
declare function readInterfaces(options?: KernelOptionsInput): DeviceInterface[];
declare function readNdProviders(): NdProviderEntry[];
declare function readProcesses(options?: ReadProcessesOptions): Promise<ObservedKernel[]>;
declare function registerUserVerbs(library: string, make: UserVerbsMaker): Disposable;
declare function removeDevice(guid: bigint, options?: KernelOptionsInput): void;
declare function replyAddressVector(grh: Uint8Array, source?: string | Uint8Array): WvAddressVector;
declare function requireUserVerbs(library: string, table: Partial<UserVerbs> | undefined): UserVerbs;
declare function reserved(size: number): ReservedType;
declare function scopeIdOfAddress(address: string): number;
declare function setMaxBufferedBytes(bytes: number): void;
declare function setPartitions(pkeys: PkeyTables, options?: KernelOptionsInput): void;
declare function sharedGid(gid: Uint8Array): Uint8Array;
declare function sockaddrData(address: SocketAddress | undefined): {
    sockAddr: Uint8Array;
};
declare function sockaddrOfGid(gid: Uint8Array, port: number, scopeId: number): Uint8Array;
declare function socketAddress(address: string | SocketAddress, name?: string): SocketAddress;
declare function statusHex(status: number): string;
declare function statusName(status: number): string;
declare function statusText(status: number): string;
declare function struct<const F extends Fields>(name: string, table: F): Struct<F>;
declare function tableMark(table: Fields): number;
declare function union<const F extends Fields>(name: string, table: F): Struct<F>;
declare function unloadDriver(name: string, options?: KernelOptionsInput): Overlapped<void>;
declare function widen<T extends object>(object: T, fields: readonly (keyof T)[]): T;
declare function wireView(bytes: Uint8Array, offset: number, size: number, name?: string): DataView;
declare function withProviderData(head: Uint8Array, provider: Uint8Array | null): Uint8Array;
interface AbortOptions {
    readonly signal?: AbortSignal | undefined;
}
interface AllocateOptions {
    readonly shared?: boolean | undefined;
}
interface BroadcastOptions {
    readonly except?: Channel | undefined;
    readonly slow?: 'drop' | 'close' | undefined;
    readonly maxQueuedBytes?: number | undefined;
}
interface BroadcastResult {
    readonly sent: number;
    readonly dropped: number;
}
interface BytesType extends FieldType<Uint8Array> {
}
interface Call {
    readonly syscall: 'connect' | 'listen';
    readonly address: string;
    readonly port: number;
}
interface ChannelOptions {
    readonly onRequest?: RequestHandler | undefined;
    readonly slots?: number | undefined;
    readonly slotBytes?: number | undefined;
    readonly maxMessageBytes?: number | undefined;
    readonly maxRequests?: number | undefined;
}
interface CmOptions {
    responseTimeoutCode: number;
    maxRetries: number;
    timewaitMs: number;
    mraServiceTimeoutCode: number;
}
interface Codec<V> {
    encode(value: V): Uint8Array;
    decode(bytes: Buffer): V;
}
interface ConnectChannelOptions extends ChannelOptions {
    readonly signal?: AbortSignal | undefined;
}
interface ConnectChannelParameters extends ConnectChannelOptions {
    readonly port?: number | undefined;
    readonly name?: string | undefined;
    readonly host?: string | undefined;
}
interface ConnectOptions extends SocketOptions, NodeSocketOptions {
    readonly port?: number | undefined;
    readonly name?: string | undefined;
    readonly host?: string | undefined;
    readonly signal?: AbortSignal | undefined;
    readonly timeout?: number | undefined;
    readonly onread?: OnReadOptions | null | undefined;
}
interface ConnectionParameters {
    readonly responderResources?: number;
    readonly initiatorDepth?: number;
    readonly retryCount?: number;
    readonly rnrRetryCount?: number;
    readonly privateData?: Uint8Array;
}
interface ConnectionStatistics {
    readonly type: 'connect' | 'datagram';
    readonly state: string;
    readonly local: string;
    readonly remote: string;
    readonly qpn: number;
}
interface Counters {
    readonly objects: Readonly<Record<ObjectKind, number>>;
    readonly hca: Readonly<Record<string, number>>;
    readonly cm: Readonly<Record<string, number>>;
    readonly io: Readonly<Record<string, number>>;
    readonly filter: Readonly<Record<string, number>>;
    readonly devices: Readonly<Record<string, number>>;
}
interface DeviceFile {
    readonly name: string;
    readonly closed: boolean;
    readonly extended: boolean;
    readonly localOnly: boolean;
    ioctl(code: number, input: Uint8Array | null, outputLength: number, outputAt?: number): Uint8Array;
    ioctlOverlapped<T>(code: number, input: Uint8Array | null, outputLength: number, decode: (output: Uint8Array) => T, outputAt?: number): Overlapped<T>;
    close(): void;
}
interface DeviceInterface {
    readonly guid: bigint;
    readonly name: string;
    readonly index: number;
    readonly hca?: {
        readonly device: string;
        readonly driver: string;
        readonly firmware: string;
    };
}
interface DeviceStatistics {
    readonly name: string;
    readonly guid: string;
    readonly hca: string;
}
interface DriverDispatch {
    create(file: FileObject, irp: Irp): number;
    deviceControl(file: FileObject, irp: Irp): number;
    cleanup(file: FileObject): void;
    close(file: FileObject): void;
}
interface DriverRoutines {
    create?(file: FileObject, irp: Irp): number;
    cleanup?(file: FileObject): void;
    close?(file: FileObject): void;
    unload?(): void | Promise<void>;
}
interface DroppedAddresses {
    readonly localAddress?: string | undefined;
    readonly localPort?: number | undefined;
    readonly localFamily?: 'IPv4' | 'IPv6' | undefined;
    readonly remoteAddress?: string | undefined;
    readonly remotePort?: number | undefined;
    readonly remoteFamily?: 'IPv4' | 'IPv6' | undefined;
}
interface EndpointAttributes {
    readonly localAddress: string;
    readonly localPort: number;
    readonly peerAddress: string;
    readonly peerPort: number;
    readonly responderResources: number;
    readonly initiatorDepth: number;
    readonly privateData: Uint8Array;
}
interface ExposeOptions {
    readonly writable?: boolean | undefined;
    readonly views?: boolean | undefined;
}
interface FaultOptions {
    seed: number;
    drop: number;
    duplicate: number;
    reorder: number;
    corrupt: number;
    dropMads: Record<string, number>;
}
interface FieldInfo {
    readonly name: string;
    readonly key: string;
    readonly offset: number;
    readonly size: number;
    readonly type: string;
    readonly reserved: boolean;
}
interface FieldType<V, I = V> {
    readonly name: string;
    readonly kind: 'uint' | 'long' | 'bytes' | 'reserved' | 'struct' | 'union';
    readonly size: number;
    readonly align: number;
    readonly littleEndian?: boolean;
    read(from: Uint8Array, at: number): V;
    write(to: Uint8Array, at: number, value: I, path: string, refuse: Refuse): void;
    zero(): V;
}
interface GetResultOptions {
    readonly wait?: boolean;
}
interface HcaLimits {
    maxQp: number;
    maxCq: number;
    maxPd: number;
    maxMr: number;
    maxMw: number;
    maxSrq: number;
    maxSrqWr: number;
    maxSrqSge: number;
    maxQpWr: number;
    maxSge: number;
    maxReadSge: number;
    maxCqEntries: number;
    maxInline: number;
    maxReadDepth: number;
    maxMrSize: number;
    maxAh: number;
    maxGroups: number;
    maxGroupQps: number;
    maxAttached: number;
    maxPkeys: number;
}
interface HcaPort {
    readonly guid: bigint;
    readonly portGuid: bigint;
    readonly interfaceName: string;
    readonly interfaceIndex: number;
    readonly mac: Uint8Array | undefined;
    readonly state: number;
    readonly activeMtu: number;
    readonly ipMtu?: number;
    readonly link: LinkAttributes;
    readonly gids: readonly Uint8Array[];
    readonly addresses: readonly InterfaceAddress[];
    readonly pkeys: readonly number[];
}
interface IND2Adapter extends NdUnknown {
    query(version?: number): Nd2AdapterInfo;
    queryAddressList(): SocketAddress[];
    createOverlappedFile(): NdOverlappedFile;
    createCompletionQueue(depth: number, affinity?: Nd2Affinity, file?: NdOverlappedFile): IND2CompletionQueue;
    createMemoryRegion(file?: NdOverlappedFile): IND2MemoryRegion;
    createMemoryWindow(): IND2MemoryWindow;
    createSharedReceiveQueue(options: Nd2SharedReceiveQueueOptions): IND2SharedReceiveQueue;
    createQueuePair(options: Nd2QueuePairOptions): IND2QueuePair;
    createQueuePairWithSrq(options: Nd2SrqQueuePairOptions): IND2QueuePair;
    createConnector(file?: NdOverlappedFile): IND2Connector;
    createListener(file?: NdOverlappedFile): IND2Listener;
    [Symbol.asyncDispose](): Promise<void>;
}
interface IND2CompletionQueue extends IND2Overlapped {
    readonly entries: number;
    getNotifyAffinity(): Nd2Affinity;
    resize(depth: number): void;
    notify(type: NdNotifyType): Overlapped<void>;
    shouldPoll?(): boolean;
    getResults(results: Nd2Result[], max?: number): number;
}
interface IND2Connector extends IND2Overlapped {
    bind(address: NdAddress): void;
    connect(queuePair: IND2QueuePair, address: NdAddress, options?: Nd2ConnectOptions): Overlapped<void>;
    completeConnect(): Overlapped<void>;
    accept(queuePair: IND2QueuePair, options?: Nd2ConnectOptions): Overlapped<void>;
    reject(privateData?: Uint8Array): void;
    getReadLimits(): Nd2ReadLimits;
    getPrivateData(): Uint8Array;
    getLocalAddress(): SocketAddress;
    getPeerAddress(): SocketAddress;
    notifyDisconnect(): Overlapped<void>;
    disconnect(): Overlapped<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
interface IND2Listener extends IND2Overlapped {
    bind(address: NdAddress): void;
    listen(backlog?: number): void;
    getLocalAddress(): SocketAddress;
    getConnectionRequest(connector: IND2Connector): Overlapped<void>;
}
interface IND2MemoryRegion extends IND2Overlapped {
    register(buffer: ArrayBufferLike | ArrayBufferView, flags: number): Overlapped<void>;
    deregister(): Overlapped<void>;
    readonly address: bigint;
    readonly length: number;
    getLocalToken(): number;
    getRemoteToken(): number;
}
interface IND2MemoryWindow extends INDMemoryWindow {
    getRemoteToken(): number;
}
interface IND2Overlapped extends NdOverlappedObject {
}
interface IND2Provider extends NdUnknown {
    queryAddressList(): SocketAddress[];
    resolveAddress(address: NdAddress): bigint;
    openAdapter(adapter: bigint | NdAddress, options?: NdAdapterOptions): IND2Adapter;
}
interface IND2QueuePair extends NdUnknown {
    readonly maxReceiveRequestSge: number;
    readonly maxInitiatorRequestSge: number;
    flush(): void;
    send(context: unknown, sgl: readonly Nd2Sge[], flags?: number): void;
    receive(context: unknown, sgl: readonly Nd2Sge[]): void;
    bind(context: unknown, region: IND2MemoryRegion, window: IND2MemoryWindow, offset: number, length: number, flags?: number): void;
    invalidate(context: unknown, window: IND2MemoryWindow, flags?: number): void;
    read(context: unknown, sgl: readonly Nd2Sge[], remote: Nd2RemoteMemory, offset?: number, flags?: number): void;
    write(context: unknown, sgl: readonly Nd2Sge[], remote: Nd2RemoteMemory, offset?: number, flags?: number): void;
    direct?(operation: Nd2Direct, bytes: Uint8Array, remote: Nd2RemoteMemory, offset?: number): Nd2DirectResult;
    view?(remote: Nd2RemoteMemory, length: number, offset?: number): Uint8Array<ArrayBuffer> | typeof Nd2DirectResult.NOT_MAPPED | typeof Nd2DirectResult.REFUSED;
}
interface IND2SharedReceiveQueue extends IND2Overlapped {
    getNotifyAffinity(): Nd2Affinity;
    modify(depth: number, notifyThreshold: number): void;
    notify(): Overlapped<void>;
    receive(context: unknown, sgl: readonly Nd2Sge[]): void;
}
interface INDAdapter extends INDOverlapped {
    getFileHandle(): NdOverlappedFile;
    readonly address: SocketAddress;
    query(version?: number): NdAdapterInfo;
    control(code: number, input: Uint8Array | null, outputLength: number): Overlapped<Uint8Array>;
    createCompletionQueue(entries: number): INDCompletionQueue;
    registerMemory(buffer: ArrayBufferLike | ArrayBufferView): Overlapped<NdMemoryHandle>;
    deregisterMemory(memory: NdMemoryHandle | number): Overlapped<void>;
    createMemoryWindow(invalidateResult?: NdResult): INDMemoryWindow;
    createConnector(): INDConnector;
    listen(options?: NdListenOptions): INDListen;
    [Symbol.asyncDispose](): Promise<void>;
}
interface INDCompletionQueue extends INDOverlapped {
    readonly entries: number;
    resize(entries: number): void;
    notify(type: NdNotifyType): Overlapped<void>;
    getResults(results: NdResult[], max?: number): number;
}
interface INDConnector extends INDOverlapped {
    createEndpoint(options: NdEndpointOptions): INDEndpoint;
    connect(endpoint: INDEndpoint, address: NdAddress, options?: NdConnectOptions): Overlapped<void>;
    completeConnect(): Overlapped<void>;
    accept(endpoint: INDEndpoint, privateData?: Uint8Array): Overlapped<void>;
    reject(privateData?: Uint8Array): void;
    getConnectionData(): NdConnectionData;
    getLocalAddress(): SocketAddress;
    getPeerAddress(): SocketAddress;
    notifyDisconnect(): Overlapped<void>;
    disconnect(): Overlapped<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
interface INDEndpoint extends NdUnknown {
    readonly maxInline: number;
    readonly inboundSge: number;
    readonly outboundSge: number;
    flush(): void;
    startRequestBatch(): void;
    submitRequestBatch(): void;
    send(result: NdResult, sgl: readonly NdSge[], flags?: number): void;
    sendAndInvalidate(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, flags?: number): void;
    receive(result: NdResult, sgl: readonly NdSge[]): void;
    bind(result: NdResult, memory: NdMemoryHandle | number, window: INDMemoryWindow, offset: number, length: number, flags: number): NdMwDescriptor;
    invalidate(result: NdResult, window: INDMemoryWindow, flags?: number): void;
    read(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags?: number): void;
    write(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags?: number): void;
}
interface INDListen extends INDOverlapped {
    readonly port: number;
    readonly address: SocketAddress;
    getConnectionRequest(connector: INDConnector): Overlapped<void>;
}
interface INDMemoryWindow extends NdUnknown {
}
interface INDOverlapped extends NdOverlappedObject {
}
interface INDProvider extends NdUnknown {
    queryAddressList(): SocketAddress[];
    openAdapter(adapter: NdAddress | bigint, options?: NdAdapterOptions): INDAdapter;
}
interface IWVAddressHandle extends WvUnknown {
}
interface IWVCompletionQueue extends WvOverlappedObject {
    readonly entries: number;
    resize(entries: number): void;
    peek(): number;
    poll(completions: WvCompletion[], n?: number): number;
    notify(type: WvCqNotifyType): Overlapped<void>;
    batchNotify(n: number): Overlapped<void>;
}
interface IWVConnectEndpoint extends IWVEndpoint {
    getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
    connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
    accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
    disconnect(): Overlapped<void>;
    keepQueuePairOnDisconnect(keep: boolean): void;
    notifyDisconnect(): Overlapped<void>;
    query(): WvConnectAttributes;
}
interface IWVConnectQueuePair extends IWVQueuePair {
    send(context: unknown, sgl: readonly WvSge[], flags: number, immediate?: number): void;
    sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void;
    read(context: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number): void;
    write(context: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number, immediate?: number): void;
    direct?(operation: WvDirect, bytes: Uint8Array, remote: RemoteMemoryRef, offset: number): WvDirectResult;
    view?(remote: RemoteMemoryRef, offset: number, length: number): Uint8Array<ArrayBuffer> | typeof WvDirectResult.NOT_MAPPED | typeof WvDirectResult.REFUSED;
    compareExchange(context: unknown, sge: WvSge, flags: number, compare: bigint, exchange: bigint, remote: RemoteMemoryRef, offset: number): void;
    fetchAdd(context: unknown, sge: WvSge, flags: number, value: bigint, remote: RemoteMemoryRef, offset: number): void;
    bindMemoryWindow(window: IWVMemoryWindow, context: unknown, region: WvMemoryRegion, offset: number, length: number, access: number, flags: number): number;
    invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void;
    fastRegister(region: IWVFastRegion, context: unknown, memory: WvSge, access: number, flags: number, keyByte?: number): number;
    invalidateRegion(region: IWVFastRegion, context: unknown, flags: number): void;
}
interface IWVDatagramEndpoint extends IWVEndpoint {
    getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void>;
    lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes>;
    accept(param: WvDatagramParam): Overlapped<void>;
    joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes>;
    leaveMulticast(group: SocketAddress): Overlapped<void>;
    query(peer?: SocketAddress): WvDatagramAttributes;
}
interface IWVDatagramQueuePair extends IWVQueuePair {
    start(qkey: number, options?: WvDatagramStart): void;
    send(context: unknown, addressHandle: IWVAddressHandle, sge: WvSge, flags: number, destinationQpn: number, destinationQkey: number): void;
    sendMessage(message: WvSendDatagram): void;
    attachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
    detachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
}
interface IWVDevice extends WvOverlappedObject {
    readonly guid: bigint;
    readonly name: string;
    query(): WvDeviceAttributes;
    queryPort(port: number): WvPortAttributes;
    queryGid(port: number, index: number): Uint8Array;
    findGid(port: number, gid: Uint8Array): number;
    queryPkey(port: number, index: number): number;
    findPkey(port: number, pkey: number): number;
    createCompletionQueue(entries: number): IWVCompletionQueue;
    notify(port: number): Overlapped<number>;
    allocateProtectionDomain(): IWVProtectionDomain;
    [Symbol.asyncDispose](): Promise<void>;
}
interface IWVEndpoint extends WvOverlappedObject {
    resolveRoute(peer: SocketAddress): void;
    modify(path: WvPathRecord): void;
    bindAddress(address: SocketAddress, device?: WvDeviceAddress): SocketAddress;
    listen(backlog: number, pkey?: number): void;
    reject(privateData?: Uint8Array): void;
}
interface IWVFastRegion extends WvUnknown, WvMemoryRegion {
    readonly maxLength: number;
}
interface IWVMemoryWindow extends WvUnknown {
    readonly rkey: number;
}
interface IWVProtectionDomain extends WvOverlappedObject {
    registerMemory(buffer: ArrayBufferLike | ArrayBufferView, access: number): WvMemoryRegion;
    registerMemoryOverlapped(buffer: ArrayBufferLike | ArrayBufferView, access: number): Overlapped<WvMemoryRegion>;
    deregisterMemory(region: WvMemoryRegion): void;
    deregisterMemoryOverlapped(region: WvMemoryRegion): Overlapped<void>;
    allocateMemoryWindow(): IWVMemoryWindow;
    allocateFastRegion(maxLength: number): IWVFastRegion;
    createSharedReceiveQueue(maxWr: number, maxSge: number, srqLimit?: number): IWVSharedReceiveQueue;
    createConnectQueuePair(create: WvQpCreate): IWVConnectQueuePair;
    createDatagramQueuePair(create: WvQpCreate): IWVDatagramQueuePair;
    createAddressHandle(vector: WvAddressVector): IWVAddressHandle;
    [Symbol.asyncDispose](): Promise<void>;
}
interface IWVProvider extends WvUnknown {
    getFileHandle(): DeviceFile;
    queryDeviceList(): bigint[];
    notifyDeviceChange(known: number): Overlapped<number>;
    readonly maxAcceptData: number;
    queryDevice(guid: bigint): WvDeviceAttributes;
    translateAddress(address: string | SocketAddress): WvDeviceAddress;
    resolvePath(remote: string | SocketAddress, local?: string | SocketAddress): WvPath;
    openDevice(guid: bigint): IWVDevice;
    createConnectEndpoint(protocol?: number): IWVConnectEndpoint;
    createDatagramEndpoint(): IWVDatagramEndpoint;
    [Symbol.asyncDispose](): Promise<void>;
}
interface IWVQueuePair extends WvOverlappedObject {
    readonly qpn: number;
    readonly state: number;
    readonly sendSge: number;
    readonly receiveSge: number;
    readonly maxInlineSend: number;
    query(): WvQpAttributes;
    modify(attributes: Partial<WvQpAttributes>, options: number): void;
    modifyOverlapped(attributes: Partial<WvQpAttributes>, options: number): Overlapped<void>;
    postReceive(context: unknown, sgl: readonly WvSge[]): void;
    postSend(requests: readonly WvSendRequest[]): void;
    startBatch(): void;
    submitBatch(): void;
}
interface IWVSharedReceiveQueue extends WvOverlappedObject {
    query(): WvSrqAttributes;
    modify(maxWr: number, limit: number): void;
    postReceive(context: unknown, sgl: readonly WvSge[]): void;
    notify(): Overlapped<WvSrqEvent>;
}
interface IbCaDispatch<C = unknown> {
    fatalEvent?(ca: IbCa, context: C): void;
    portEvent?(ca: IbCa, context: C, port: number, event: number): void;
}
interface IbCqDispatch<C = unknown> {
    compEvent?(cq: IbCq, context: C): void;
    asyncEvent?(cq: IbCq, context: C, event: number): void;
}
interface IbMcast {
    readonly gid: Uint8Array;
    readonly lid: number;
    readonly interfaceIndex: number;
}
interface IbModifyCa {
    systemImageGuid: bigint;
}
interface IbModifyPort {
    setCapabilities: number;
    clearCapabilities: number;
    initType: number;
}
interface IbQpAsked {
    readonly type?: number;
    readonly sendCq: IbCq;
    readonly receiveCq: IbCq;
    readonly srq?: IbSrq | undefined;
    readonly sendDepth?: number;
    readonly sendSge?: number;
    readonly receiveDepth?: number;
    readonly receiveSge?: number;
    readonly maxInlineSend?: number;
    readonly initiatorDepth?: number;
    readonly responderResources?: number;
    readonly signalAll?: boolean;
    readonly memoryManagement?: boolean;
}
interface IbQpDispatch<C = unknown> {
    asyncEvent?(qp: IbQp, context: C, event: number, reason: number): void;
}
interface IbSrqAttributes {
    maxWr: number;
    maxSge: number;
    srqLimit: number;
}
interface IbSrqDispatch<C = unknown> {
    limitEvent?(srq: IbSrq, context: C): void;
    lastWqeEvent?(srq: IbSrq, context: C, qp: IbQp): void;
    asyncEvent?(srq: IbSrq, context: C, event: number): void;
}
interface IncomingRequest {
    readonly signal: AbortSignal;
    readonly channel: Channel;
}
interface InterfaceAddress {
    gid: Uint8Array;
    family: 4 | 6;
    prefixLength: number;
}
interface IoStatus<T> {
    status: number;
    information: T | undefined;
    outputBytes: number | undefined;
}
interface IoctlRow<Code extends number = number> {
    readonly code: Code;
    readonly input: AnyStruct | null;
    readonly output: AnyStruct | null;
    readonly inputTail: IoctlTail;
    readonly outputTail: IoctlTail;
    readonly pends: boolean;
    readonly cancel: string | null;
    readonly datagram: {
        readonly input: AnyStruct;
        readonly output: AnyStruct | null;
    } | null;
    readonly defined: boolean;
}
interface IrpInit<T> {
    major: number;
    requestorMode: RequestorMode;
    fileObject?: FileObject | undefined;
    controlCode?: number;
    input?: Uint8Array;
    outputLength?: number;
    native?: NativeSlot;
    onComplete(irp: Irp<T>): void;
}
interface IrpStackLocation {
    readonly major: number;
    readonly fileObject: FileObject | undefined;
    readonly controlCode: number;
    readonly inputLength: number;
    readonly outputLength: number;
}
interface KernelOptions {
    cm: CmOptions;
    rc: RcOptions;
    keepAliveMs: number;
    rnrTimeoutMs: number;
    ecn: boolean;
    window: number;
    longWindowBytes: number;
    link: 'auto' | 'wire' | 'local';
    icrc: 'solved' | 'exact';
    direct: boolean;
    capture: string;
    statistics: boolean;
    receiveBufferBytes: number;
    faults: FaultOptions;
    pkeys: number[] | Record<string, number[]>;
    hca: string;
    kernel: 'auto' | 'driver' | 'soft';
    startTimeoutMs: number;
}
interface KernelOptionsInput extends Omit<Given<KernelOptions>, 'cm' | 'rc' | 'faults'> {
    cm?: Given<CmOptions> | undefined;
    rc?: Given<RcOptions> | undefined;
    faults?: Given<FaultOptions> | undefined;
}
interface KernelStatistics {
    readonly form: number;
    readonly pid: number;
    readonly node: string;
    readonly uptime: number;
    readonly at: number;
    readonly devices: readonly DeviceStatistics[];
    readonly wire: 'open' | 'unused' | 'held' | 'never' | 'none';
    readonly counters: Readonly<Record<string, Readonly<Record<string, number>>>>;
    readonly sharedReceived: number;
    readonly queuePairs: readonly QueuePairStatistics[];
    readonly connections: readonly ConnectionStatistics[];
    readonly memory: readonly MemoryStatistics[];
    readonly omitted: {
        readonly queuePairs: number;
        readonly connections: number;
        readonly memory: number;
    };
}
interface KernelTimer {
    cancel(): void;
}
interface KnownPort extends HcaPort {
}
interface Layouts {
    struct<const F extends Fields>(name: string, table: F): Struct<F>;
    packed<const F extends Fields>(name: string, table: F): Struct<F>;
    union<const F extends Fields>(name: string, table: F): Struct<F>;
}
interface List<V, I> {
    readonly name: string;
    readonly elementSize: number;
    encode(values: readonly I[], maxBytes?: number): Uint8Array;
    decode(bytes: Uint8Array): V[];
}
interface ListenOptions {
    readonly port?: number | undefined;
    readonly host?: string | undefined;
    readonly name?: string | undefined;
    readonly backlog?: number | undefined;
    readonly signal?: AbortSignal | undefined;
}
interface LoadDriverOptions {
    readonly name?: string;
    readonly parameters?: unknown;
    readonly timeoutMs?: number;
    readonly kernel?: KernelOptionsInput;
}
interface LoadedDriver {
    readonly name: string;
    readonly devices: readonly string[];
}
interface LocalNameClaim {
    publish(port: number): void;
    release(): void;
}
interface MemoryStatistics {
    readonly kind: 'region' | 'window' | 'fast';
    readonly length: number;
    readonly access: readonly string[];
    readonly live: boolean;
    readonly allocated: boolean;
}
interface NamedIoctlRow extends IoctlRow {
    readonly name: string;
}
interface NativeSlot {
    readonly slot: number;
    readonly serial: number;
}
interface Nd2AcceptingOptions extends Nd2ConnectOptions, WaitOptions {
}
interface Nd2AdapterInfo {
    readonly infoVersion: number;
    readonly vendorId: number;
    readonly deviceId: number;
    readonly adapterId: bigint;
    readonly maxRegistrationSize: number;
    readonly maxWindowSize: number;
    readonly maxInitiatorSge: number;
    readonly maxReceiveSge: number;
    readonly maxReadSge: number;
    readonly maxTransferLength: number;
    readonly maxInlineDataSize: number;
    readonly maxInboundReadLimit: number;
    readonly maxOutboundReadLimit: number;
    readonly maxReceiveQueueDepth: number;
    readonly maxInitiatorQueueDepth: number;
    readonly maxSharedReceiveQueueDepth: number;
    readonly maxCompletionQueueDepth: number;
    readonly inlineRequestThreshold: number;
    readonly largeRequestThreshold: number;
    readonly maxCallerData: number;
    readonly maxCalleeData: number;
    readonly adapterFlags: number;
}
interface Nd2Affinity {
    readonly group: number;
    readonly mask: bigint;
}
interface Nd2ConnectOptions {
    inboundReadLimit?: number;
    outboundReadLimit?: number;
    privateData?: Uint8Array;
}
interface Nd2Connected {
    readonly connector: IND2Connector;
    readonly privateData: Uint8Array;
}
interface Nd2ConnectingOptions extends Nd2ConnectOptions, WaitOptions {
    readonly from?: NdAddress | undefined;
}
interface Nd2InitiatorOptions {
    receiveCompletionQueue: IND2CompletionQueue;
    initiatorCompletionQueue: IND2CompletionQueue;
    context?: unknown;
    initiatorQueueDepth: number;
    maxInitiatorRequestSge?: number;
    inlineDataSize?: number;
}
interface Nd2QueuePairOptions extends Nd2InitiatorOptions {
    receiveQueueDepth: number;
    maxReceiveRequestSge?: number;
}
interface Nd2ReadLimits {
    readonly inbound: number;
    readonly outbound: number;
}
interface Nd2Result {
    status: number;
    bytesTransferred: number;
    queuePairContext: unknown;
    requestContext: unknown;
    requestType: Nd2RequestType;
}
interface Nd2Sge {
    memory: IND2MemoryRegion | number | Uint8Array;
    offset: number;
    length: number;
}
interface Nd2SharedReceiveQueueOptions {
    depth: number;
    maxRequestSge?: number;
    notifyThreshold?: number;
    affinity?: Nd2Affinity;
    overlappedFile?: NdOverlappedFile;
}
interface Nd2SrqQueuePairOptions extends Nd2InitiatorOptions {
    sharedReceiveQueue: IND2SharedReceiveQueue;
}
interface NdAcceptingOptions extends WaitOptions {
    readonly privateData?: Uint8Array | undefined;
}
interface NdAdapterInfo {
    readonly vendorId: number;
    readonly deviceId: number;
    readonly maxInboundSge: number;
    readonly maxInboundRequests: number;
    readonly maxInboundLength: number;
    readonly maxOutboundSge: number;
    readonly maxOutboundRequests: number;
    readonly maxOutboundLength: number;
    readonly maxInlineData: number;
    readonly maxInboundReadLimit: number;
    readonly maxOutboundReadLimit: number;
    readonly maxCqEntries: number;
    readonly maxRegistrationSize: number;
    readonly maxWindowSize: number;
    readonly largeRequestThreshold: number;
    readonly maxCallerData: number;
    readonly maxCalleeData: number;
}
interface NdAdapterOptions {
    readonly pkey?: number | undefined;
    readonly keepQueuePairsOnDisconnect?: boolean | undefined;
}
interface NdCompletedRequest {
    readonly request: Overlapped<unknown>;
    readonly issuer: NdOverlappedObject;
}
interface NdConnectOptions {
    privateData?: Uint8Array;
    localPort?: number;
    protocol?: number;
}
interface NdConnectingOptions extends NdConnectOptions, WaitOptions {
}
interface NdConnectionData {
    readonly inboundReadLimit: number;
    readonly outboundReadLimit: number;
    readonly privateData: Uint8Array;
}
interface NdEndpointOptions {
    inboundCompletionQueue: INDCompletionQueue;
    outboundCompletionQueue: INDCompletionQueue;
    inboundEntries: number;
    outboundEntries: number;
    inboundSge?: number;
    outboundSge?: number;
    inboundReadLimit?: number;
    outboundReadLimit?: number;
}
interface NdInterfaces {
    IUnknown: NdUnknown;
}
interface NdListenOptions {
    port?: number;
    backlog?: number;
    protocol?: number;
}
interface NdMemoryHandle {
    readonly address: bigint;
    readonly length: number;
    readonly handle: number;
}
interface NdOverlappedFile extends AsyncIterableIterator<NdCompletedRequest, undefined>, Disposable {
    readonly outstanding: number;
    readonly closed: boolean;
    next(): Promise<IteratorResult<NdCompletedRequest, undefined>>;
    close(): void;
}
interface NdOverlappedObject extends NdUnknown {
    cancelOverlappedRequests(): void;
    getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
}
interface NdProviderEntry {
    readonly library: string;
    readonly path: string;
    readonly protocol: string;
    readonly id: string;
    readonly version: string;
    readonly refused?: string;
}
interface NdResult {
    status: number;
    bytesTransferred: number;
    context?: unknown;
}
interface NdSge {
    memory: NdMemoryHandle | number | Uint8Array;
    offset: number;
    length: number;
}
interface NdUnknown {
    queryInterface<N extends keyof NdInterfaces>(name: N): NdInterfaces[N];
    addRef(): number;
    release(): number;
    [Symbol.dispose](): void;
}
interface NodeSocketOptions {
    readonly noDelay?: boolean | undefined;
    readonly keepAlive?: boolean | undefined;
    readonly keepAliveInitialDelay?: number | undefined;
    readonly family?: number | undefined;
    readonly hints?: number | undefined;
    readonly lookup?: unknown;
    readonly localAddress?: string | undefined;
    readonly localPort?: number | undefined;
    readonly autoSelectFamily?: boolean | undefined;
    readonly autoSelectFamilyAttemptTimeout?: number | undefined;
}
interface Notifying {
    notify(type: 'any'): Overlapped<void>;
}
interface ObjectVerbs extends Readonly<typeof objectVerbs> {
}
interface ObservedKernel {
    readonly pid: number;
    readonly slot: number;
    readonly statistics?: KernelStatistics;
    readonly problem?: 'refused' | 'silent' | 'otherVersion' | 'unreadable';
}
interface OnReadOptions {
    readonly buffer: Uint8Array | (() => Uint8Array);
    readonly callback: (bytesWritten: number, buffer: Uint8Array) => unknown;
}
interface OpenSharedMapOptions {
    readonly name?: string | undefined;
    readonly port?: number | undefined;
    readonly host?: string | undefined;
    readonly signal?: AbortSignal | undefined;
}
interface OptionsError extends Error {
    readonly issues: readonly OptionsIssue[];
}
interface OptionsIssue {
    readonly code?: string | undefined;
    readonly path: readonly PropertyKey[];
    readonly message: string;
    readonly keys?: readonly string[] | undefined;
    readonly issues?: readonly OptionsIssue[] | undefined;
}
interface OptionsSchema<T> {
    parse(value: unknown): T;
    safeParse(value: unknown): OptionsResult<T>;
}
interface OverlappedSource<T> {
    completed(): boolean;
    take(): T;
    wait(): void;
    cancel(): void;
    deliver?(): void;
    hold?(holds: boolean): void;
}
interface PathParameters {
    source: Uint8Array;
    destination: Uint8Array;
    flowLabel: number;
    trafficClass: number;
    hopLimit: number;
    scopeId: number;
}
interface ProviderDoors {
    openFile(name: string): DeviceFile;
    loadUserVerbs(library: string): UserVerbs;
}
interface QpAttributeValues {
    state: number;
    currentState: number;
    type: number;
    qpn: number;
    access: number;
    pkeyIndex: number;
    port: number;
    qkey: number;
    path: PathParameters;
    pathMtu: number;
    destinationQpn: number;
    receivePsn: number;
    sendPsn: number;
    responderResources: number;
    initiatorDepth: number;
    minRnrTimer: number;
    ackTimeout: number;
    retryCount: number;
    rnrRetry: number;
    rnrTimeout: number;
    extensions: number;
}
interface QpCreateParameters {
    pd: number;
    sendCq: number;
    receiveCq: number;
    srq: number;
    pkeyTable: number;
    type: number;
    signalAll: boolean;
    ringAddress: number;
    ringBytes: number;
    sendEntries: number;
    sendStride: number;
    sendSge: number;
    maxInline: number;
    receiveEntries: number;
    receiveStride: number;
    receiveSge: number;
    token: number;
}
interface QueuePairStatistics {
    readonly qpn: number;
    readonly type: string;
    readonly state: string;
    readonly local: string;
    readonly remote: string;
    readonly remoteQpn: number;
    readonly mtu: number;
    readonly link: 'local' | 'wire' | 'none';
    readonly sendEntries: number;
    readonly sendWaiting: number;
    readonly sent: number;
    readonly receiveEntries: number;
    readonly receiveWaiting: number;
    readonly received: number;
    readonly sharedReceives: boolean;
    readonly window: number;
    readonly inFlight: number;
    readonly retries: number;
    readonly rnrRetries: number;
    readonly rnrWaiting: boolean;
    readonly roundTripNs: number;
}
interface RcOptions {
    ackTimeoutCode: number;
    minRnrTimerCode: number;
    trafficClass: number;
}
interface ReadProcessesOptions {
    readonly pid?: number;
    readonly timeoutMs?: number;
}
interface Refusals {
    readonly value: Refuse;
    room(what: 'input' | 'output', name: string, size: number, length: number, offset: number): never;
}
interface RemoteMemoryRef {
    readonly addressLow: number;
    readonly addressHigh: number;
    readonly rkey: number;
}
interface RemoteOptions {
    readonly signal?: AbortSignal | undefined;
}
interface ReservedType extends FieldType<undefined> {
    readonly kind: 'reserved';
}
interface ServerOptions extends NodeServerOptions {
    readonly channel?: ChannelOptions | undefined;
    readonly broadcasts?: boolean | undefined;
    readonly maxBufferedBytes?: number | undefined;
    readonly socket?: SocketOptions | undefined;
    readonly allowHalfOpen?: boolean | undefined;
    readonly highWaterMark?: number | undefined;
    readonly pauseOnConnect?: boolean | undefined;
}
interface SetOptions {
    readonly ttl?: number | undefined;
}
interface Shared {
    leftover: {
        code: number;
        input: Uint8Array;
    }[];
    readonly requests: Map<number, Uint8Array>;
}
interface SharedMapOptions {
    readonly name?: string | undefined;
    readonly port?: number | undefined;
    readonly host?: string | undefined;
    readonly entries: number;
    readonly bytes?: number | undefined;
    readonly counters?: number | undefined;
}
interface SocketAddress {
    readonly family: 4 | 6;
    readonly address: string;
    readonly port: number;
}
interface SocketAddress {
    readonly family: 4 | 6;
    readonly address: string;
    readonly port: number;
}
interface SocketOptions {
    readonly slots?: number | undefined;
    readonly slotBytes?: number | undefined;
    readonly ringBytes?: number | undefined;
    readonly allowHalfOpen?: boolean | undefined;
    readonly highWaterMark?: number | undefined;
}
interface Struct<F extends Fields> extends FieldType<FieldsValue<F>, FieldsInput<F>> {
    readonly fields: readonly FieldInfo[];
    readonly table: F;
    encode(value: FieldsInput<F>, out?: Uint8Array, offset?: number): Uint8Array;
    encodeOnce(value: FieldsInput<F>): Uint8Array;
    decode(bytes: Uint8Array, offset?: number): FieldsValue<F>;
}
interface StructCode {
    readonly table: number;
    read(from: Uint8Array, at: number): unknown;
    write(to: Uint8Array, at: number, value: unknown): boolean;
}
interface Uint64Type extends FieldType<bigint> {
}
interface UintType extends FieldType<number> {
}
interface UserVerbs {
    postSend(qp: UvpHandle, request: UvpSendRequest): void;
    direct?(qp: UvpHandle, operation: 0 | 1 | 2 | 3, bytes: Uint8Array, remoteLow: number, remoteHigh: number, rkey: number): 0 | 1 | 2 | 3;
    view?(qp: UvpHandle, remoteLow: number, remoteHigh: number, rkey: number, length: number): Uint8Array<ArrayBuffer> | 1 | 2;
    postReceive(qp: UvpHandle, context: unknown, sgl: readonly UvpSge[]): void;
    pollCq(cq: UvpHandle, completions: UvpCompletion[], n: number): number;
    rearmCq(cq: UvpHandle, solicitedOnly: boolean): number;
    ndModifyQp(qp: UvpHandle): UvpQpState;
    preCreateQp(pd: UvpHandle, create: UvpQpCreate, umv: UmvBuffer): UvpHandle;
    pinMemory(view: Uint8Array): UvpPin;
    unpinMemory(pin: UvpPin): void;
    postSrqReceive?(srq: UvpHandle, context: unknown, sgl: readonly UvpSge[]): void;
    peekCq?(cq: UvpHandle): number;
    rearmNCq?(cq: UvpHandle, n: number): number;
    ndGetQpState?(qp: UvpHandle): number;
    ndGetQpn?(qp: UvpHandle): number;
    startBatch?(qp: UvpHandle): void;
    submitBatch?(qp: UvpHandle): void;
    bindMw?(mw: UvpHandle, qp: UvpHandle, request: UvpBindRequest): number;
    fastRegion?(lkey: number): UvpHandle;
    fastRegionKey?(region: UvpHandle): number;
    mwRkey?(mw: UvpHandle): number;
    invalidateMw?(mw: UvpHandle, qp: UvpHandle, context: unknown, flags: number): void;
    preOpenCa?(guid: bigint, umv: UmvBuffer): UvpHandle;
    postOpenCa?(guid: bigint, status: number, ca: UvpHandle, umv: UmvBuffer): void;
    preCloseCa?(ca: UvpHandle): void;
    postCloseCa?(ca: UvpHandle, status: number): void;
    preAllocatePd?(ca: UvpHandle, umv: UmvBuffer): UvpHandle;
    postAllocatePd?(ca: UvpHandle, status: number, pd: UvpHandle, umv: UmvBuffer): void;
    preDeallocatePd?(pd: UvpHandle): void;
    postDeallocatePd?(pd: UvpHandle, status: number): void;
    preCreateCq?(ca: UvpHandle, size: {
        entries: number;
    }, umv: UmvBuffer): UvpHandle;
    postCreateCq?(ca: UvpHandle, status: number, entries: number, cq: UvpHandle, umv: UmvBuffer): void;
    preResizeCq?(cq: UvpHandle, size: {
        entries: number;
    }, umv: UmvBuffer): void;
    postResizeCq?(cq: UvpHandle, status: number, entries: number, umv: UmvBuffer): void;
    preDestroyCq?(cq: UvpHandle): void;
    postDestroyCq?(cq: UvpHandle, status: number): void;
    preCreateSrq?(pd: UvpHandle, attributes: UvpSrqAttributes, umv: UmvBuffer): UvpHandle;
    postCreateSrq?(pd: UvpHandle, status: number, srq: UvpHandle, umv: UmvBuffer): void;
    preModifySrq?(srq: UvpHandle, attributes: UvpSrqAttributes, umv: UmvBuffer): void;
    postModifySrq?(srq: UvpHandle, status: number, umv: UmvBuffer): void;
    preQuerySrq?(srq: UvpHandle, umv: UmvBuffer): void;
    postQuerySrq?(srq: UvpHandle, status: number, attributes: UvpSrqAttributes, umv: UmvBuffer): void;
    preDestroySrq?(srq: UvpHandle): void;
    postDestroySrq?(srq: UvpHandle, status: number): void;
    postCreateQp?(pd: UvpHandle, status: number, qp: UvpHandle, umv: UmvBuffer): void;
    preDestroyQp?(qp: UvpHandle): void;
    postDestroyQp?(qp: UvpHandle, status: number): void;
    preCreateMw?(pd: UvpHandle, umv: UmvBuffer): UvpHandle;
    postCreateMw?(pd: UvpHandle, status: number, rkey: number, mw: UvpHandle, umv: UmvBuffer): void;
    preCreateAv?(pd: UvpHandle, av: UvpAddressVector, umv: UmvBuffer): UvpHandle;
    postCreateAv?(pd: UvpHandle, status: number, av: UvpHandle, umv: UmvBuffer): void;
    preDestroyAv?(av: UvpHandle): boolean | undefined;
    postDestroyAv?(av: UvpHandle, status: number): void;
    preDestroyMw?(mw: UvpHandle): void;
    postDestroyMw?(mw: UvpHandle, status: number): void;
}
interface UvpAddressVector {
    readonly sourceGid: Uint8Array;
    readonly destinationGid: Uint8Array;
    readonly flowLabel: number;
    readonly trafficClass: number;
    readonly hopLimit: number;
    readonly portNumber: number;
    sourceGidIndex(): number;
}
interface UvpCompletion {
    context: unknown;
    qpContext: unknown;
    opcode: number;
    status: number;
    length: number;
    flags: number;
    immediateData: number;
    sourceQpn: number;
    vendorCode: number;
    pkeyIndex: number;
    sLid: number;
    sl: number;
    dLidPathBits: number;
}
interface UvpMemory {
    readonly lkey: number;
    readonly address: number;
    readonly bytes?: Uint8Array | undefined;
    readonly words?: Uint32Array | undefined;
}
interface UvpPin {
    readonly pin: number;
    readonly address: number;
    readonly detachable: boolean;
    readonly allocated?: boolean | undefined;
}
interface UvpQpCreate {
    readonly type: number;
    readonly sendCq: UvpHandle;
    readonly receiveCq: UvpHandle;
    readonly srq?: UvpHandle | undefined;
    readonly context: unknown;
    sendDepth: number;
    sendSge: number;
    receiveDepth: number;
    receiveSge: number;
    maxInlineSend: number;
    readonly initiatorDepth?: number | undefined;
    readonly responderResources?: number | undefined;
    readonly signalSends?: boolean | undefined;
    readonly memoryManagement?: boolean | undefined;
}
interface UvpQpState {
    readonly size: number;
    readonly address?: number | undefined;
    moved(output: Uint8Array, state?: number): void;
}
interface UvpSge {
    region: UvpMemory;
    offset: number;
    length: number;
}
interface UvpSrqAttributes {
    maxWr: number;
    maxSge: number;
    srqLimit: number;
}
interface VerbHooks<I extends Fields, O extends Fields> {
    pre(umv: UmvBuffer): FieldsInput<I>;
    post(status: number, umv: UmvBuffer, reply: FieldsValue<O> | undefined): void;
    explain?(error: unknown): unknown;
    undo?(reply: FieldsValue<O>): void;
}
interface WaitOptions {
    readonly signal?: AbortSignal | undefined;
}
interface WithProvider {
    provider: object | null | undefined;
}
interface WvAddressVector {
    readonly sourceGid: Uint8Array | string;
    readonly destinationGid: Uint8Array | string;
    readonly flowLabel?: number;
    readonly trafficClass?: number;
    readonly hopLimit?: number;
    readonly portNumber?: number;
}
interface WvCompletion {
    context: unknown;
    qpContext: unknown;
    opcode: number;
    status: number;
    length: number;
    flags: number;
    immediateData: number;
    sourceQpn: number;
    vendorCode: number;
    pkeyIndex: number;
    sLid: number;
    sl: number;
    dLidPathBits: number;
}
interface WvConnectAttributes {
    readonly localAddress: SocketAddress;
    readonly peerAddress: SocketAddress | undefined;
    readonly device: WvDeviceAddress;
    readonly privateData: Uint8Array;
    readonly responderResources: number;
    readonly initiatorDepth: number;
    readonly retryCount: number;
    readonly rnrRetryCount: number;
    readonly backlog: number;
}
interface WvConnectParam {
    privateData?: Uint8Array;
    responderResources?: number;
    initiatorDepth?: number;
    retryCount?: number;
    rnrRetryCount?: number;
}
interface WvDatagramAttributes {
    readonly localAddress: SocketAddress;
    readonly peerAddress: SocketAddress | undefined;
    readonly device: WvDeviceAddress;
    readonly backlog: number;
    readonly addressVector: WvAddressVector | undefined;
    readonly qpn: number;
    readonly qkey: number;
    readonly sidrStatus: number;
    readonly privateData: Uint8Array;
}
interface WvDatagramParam {
    qp: IWVDatagramQueuePair | number;
    qkey?: number;
    privateData?: Uint8Array;
}
interface WvDatagramStart {
    portNumber?: number;
    pkeyIndex?: number;
    sendPsn?: number;
}
interface WvDeviceAddress {
    readonly deviceGuid: bigint;
    readonly pkey: number;
    readonly portNumber: number;
}
interface WvDeviceAttributes {
    readonly fwVersion: bigint;
    readonly nodeGuid: bigint;
    readonly systemImageGuid: bigint;
    readonly vendorId: number;
    readonly vendorPartId: number;
    readonly hwVersion: number;
    readonly capabilityFlags: number;
    readonly atomicCapability: number;
    readonly pageSizeCapabilityFlags: number;
    readonly maxMrSize: bigint;
    readonly maxQp: number;
    readonly maxQpWr: number;
    readonly maxSge: number;
    readonly maxCq: number;
    readonly maxCqEntries: number;
    readonly maxMr: number;
    readonly maxPd: number;
    readonly maxQpResponderResources: number;
    readonly maxResponderResources: number;
    readonly maxQpInitiatorDepth: number;
    readonly maxInlineSend: number;
    readonly maxMw: number;
    readonly maxMulticast: number;
    readonly maxQpAttach: number;
    readonly maxMulticastQp: number;
    readonly maxFmr: number;
    readonly maxMapPerFmr: number;
    readonly maxSrq: number;
    readonly maxSrqWr: number;
    readonly maxSrqSge: number;
    readonly maxAh: number;
    readonly maxPkeys: number;
    readonly deviceType: number;
    readonly localAckDelay: number;
    readonly physPortCount: number;
    readonly maxReadSge: number;
}
interface WvGrh {
    readonly ipVersion: 4 | 6;
    readonly sourceGid: Uint8Array;
    readonly destinationGid: Uint8Array;
    readonly trafficClass: number;
    readonly flowLabel: number;
    readonly hopLimit: number;
}
interface WvInterfaces {
    readonly IUnknown: WvUnknown;
    readonly IWVOverlapped: WvOverlappedObject;
    readonly IWVProvider: IWVProvider;
    readonly IWVDevice: IWVDevice;
    readonly IWVCompletionQueue: IWVCompletionQueue;
    readonly IWVProtectionDomain: IWVProtectionDomain;
    readonly IWVSharedReceiveQueue: IWVSharedReceiveQueue;
    readonly IWVMemoryWindow: IWVMemoryWindow;
    readonly IWVFastRegion: IWVFastRegion;
    readonly IWVAddressHandle: IWVAddressHandle;
    readonly IWVQueuePair: IWVQueuePair;
    readonly IWVConnectQueuePair: IWVConnectQueuePair;
    readonly IWVDatagramQueuePair: IWVDatagramQueuePair;
    readonly IWVEndpoint: IWVEndpoint;
    readonly IWVConnectEndpoint: IWVConnectEndpoint;
    readonly IWVDatagramEndpoint: IWVDatagramEndpoint;
}
interface WvMemoryRegion {
    readonly lkey: number;
    readonly rkey: number;
    readonly address: number;
    readonly length: number;
    readonly bytes?: Uint8Array;
}
interface WvOverlappedObject extends WvUnknown {
    cancelOverlappedRequests(): void;
    getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
}
interface WvPath {
    readonly device: WvDeviceAddress;
    readonly addressVector: WvAddressVector;
    readonly record: WvPathRecord;
}
interface WvPathRecord extends Omit<WvAddressVector, 'portNumber'> {
    readonly pkey?: number;
    readonly mtu?: number;
    readonly packetLifeTime?: number;
}
interface WvPortAttributes {
    readonly portCapabilityFlags: number;
    readonly state: number;
    readonly maxMtu: number;
    readonly activeMtu: number;
    readonly gidTableLength: number;
    readonly maxMessageSize: number;
    readonly pkeyTableLength: number;
    readonly transport: number;
    readonly physicalState: number;
    readonly badPkeyCounter: number;
    readonly qkeyViolationCounter: number;
    readonly lid: number;
    readonly smLid: number;
    readonly lmc: number;
    readonly smSl: number;
    readonly subnetTimeout: number;
    readonly maxVls: number;
    readonly initTypeReply: number;
    readonly activeWidth: number;
    readonly activeSpeed: number;
    readonly extActiveSpeed: number;
    readonly linkEncoding: number;
}
interface WvQpAttributes {
    readonly qpType: number;
    readonly qpState: number;
    readonly currentQpState: number;
    readonly qpn: number;
    readonly destinationQpn: number;
    readonly sendPsn: number;
    readonly receivePsn: number;
    readonly pathMtu: number;
    readonly sendDepth: number;
    readonly sendSge: number;
    readonly receiveDepth: number;
    readonly receiveSge: number;
    readonly maxInlineSend: number;
    readonly initiatorDepth: number;
    readonly responderResources: number;
    readonly accessFlags: number;
    readonly qkey: number;
    readonly pkeyIndex: number;
    readonly portNumber: number;
    readonly localAckTimeout: number;
    readonly retryCount: number;
    readonly rnrRetryCount: number;
    readonly rnrNakTimeout: number;
    readonly sourceGid: Uint8Array;
    readonly destinationGid: Uint8Array;
    readonly trafficClass: number;
    readonly flowLabel: number;
    readonly hopLimit: number;
    readonly qpFlags: number;
    readonly destinationLid: number;
    readonly serviceLevel: number;
    readonly sourcePathBits: number;
    readonly staticRate: number;
    readonly apmState: number;
    readonly alternatePathMtu: number;
    readonly alternatePkeyIndex: number;
    readonly alternateLocalAckTimeout: number;
    readonly pd: IWVProtectionDomain;
    readonly sendCq: IWVCompletionQueue;
    readonly receiveCq: IWVCompletionQueue;
    readonly srq: IWVSharedReceiveQueue | undefined;
}
interface WvQpCreate {
    sendCq: IWVCompletionQueue;
    receiveCq: IWVCompletionQueue;
    srq?: IWVSharedReceiveQueue;
    context?: unknown;
    sendDepth: number;
    sendSge: number;
    receiveDepth: number;
    receiveSge: number;
    maxInlineSend?: number;
    initiatorDepth?: number;
    responderResources?: number;
    signalSends?: boolean;
    memoryManagement?: boolean;
    type?: number;
}
interface WvRemoteMemory {
    readonly address: bigint | number;
    readonly rkey: number;
}
interface WvSendDatagram {
    context: unknown;
    addressHandle: IWVAddressHandle;
    sgl: readonly WvSge[];
    flags: number;
    immediateData?: number;
    destinationQpn: number;
    destinationQkey: number;
}
interface WvSendRequest {
    readonly context?: unknown;
    readonly opcode?: number;
    readonly flags?: number;
    readonly sgl?: readonly WvSge[];
    readonly immediate?: number;
    readonly invalidateRkey?: number;
    readonly remote?: RemoteMemoryRef;
    readonly remoteOffset?: number;
    readonly compareOrAdd?: bigint;
    readonly exchange?: bigint;
    readonly fastRegion?: IWVFastRegion;
    readonly access?: number;
    readonly keyByte?: number;
    readonly addressHandle?: IWVAddressHandle;
    readonly destinationQpn?: number;
    readonly destinationQkey?: number;
}
interface WvSge {
    region: Pick<WvMemoryRegion, 'lkey' | 'address' | 'bytes'>;
    offset: number;
    length: number;
}
interface WvSrqAttributes {
    readonly maxWr: number;
    readonly maxSge: number;
    readonly srqLimit: number;
}
interface WvUnknown {
    addRef(): number;
    release(): number;
    queryInterface<N extends keyof WvInterfaces>(name: N): WvInterfaces[N];
    [Symbol.dispose](): void;
}
type AnyField = FieldType<unknown, never>;
type AnyStruct = Struct<Fields>;
type CancelRoutine<T> = (irp: Irp<T>) => void;
type Codes<T extends Readonly<Record<string, IoctlRow>>> = {
    readonly [K in keyof T]: T[K]['code'];
};
type ConnectListener = () => void;
type DeviceFault = 'unplug' | 'plug' | 'fatal';
type DriverEntry = (driver: ClientDriver, kernel: KernelServices) => void | Promise<void>;
type Expand<T> = T extends infer O ? {
    [K in keyof O]: O[K];
} : never;
type FieldKey<S extends string> = S extends `${infer A}_${infer B}` ? `${Uncapitalize<A>}${Capitalize<FieldKey<B>>}` : Uncapitalize<S>;
type Fields = Readonly<Record<string, AnyField>>;
type FieldsInput<F extends Fields> = Expand<{
    readonly [K in keyof F & string as VisibleKey<F, K>]?: (F[K] extends FieldType<infer _, infer I> ? I : never) | undefined;
}>;
type FieldsValue<F extends Fields> = Expand<{
    -readonly [K in keyof F & string as VisibleKey<F, K>]: F[K] extends FieldType<infer V, infer _> ? V : never;
}>;
type Given<T> = {
    [K in keyof T]?: T[K] | undefined;
};
type HcaFileName = keyof typeof HcaFileCode;
type IbAddressVector = Value<typeof WvIoAv>;
type IbCaAttributes = Input<typeof WvIoDeviceAttributes>;
type IbPortAttributes = Input<typeof WvIoPortAttributes>;
type IbQpCreate = Omit<QpCreateParameters, 'pd' | 'sendCq' | 'receiveCq' | 'srq' | 'token' | 'ringAddress' | 'ringBytes' | 'sendEntries' | 'sendStride' | 'receiveEntries' | 'receiveStride'> & {
    sendDepth: number;
    receiveDepth: number;
    initiatorDepth: number;
    responderResources: number;
    memoryManagement: boolean;
};
type IbatName = keyof typeof IbatCode;
type Input<S> = S extends FieldType<infer _, infer I> ? I : never;
type IoctlHandler = (irp: Irp, file: FileObject) => number;
type IoctlName = keyof typeof IoctlCode;
type IoctlTail = 'none' | 'provider' | 'option' | 'privateData' | 'list' | 'text';
type IrpState = 'allocated' | 'dispatched' | 'marked' | 'completedInline' | 'completedMarked' | 'pending' | 'completed';
type LinkAttributes = Pick<Input<typeof WvIoPortAttributes>, 'portCabilityFlags' | 'maxMtu' | 'maxMessageSize' | 'maxVls' | 'activeWidth' | 'activeSpeed' | 'transport'>;
type MadeCode = Readonly<Record<string, StructCode>>;
type MessageBytes = Uint8Array | string;
type Nd2Direct = WvDirect;
type Nd2DirectResult = WvDirectResult;
type Nd2RequestType = (typeof Nd2RequestType)[keyof typeof Nd2RequestType];
type NdAddress = string | (Omit<SocketAddress, 'family'> & {
    readonly family?: 4 | 6 | undefined;
});
type NdNotifyType = 'errors' | 'any' | 'solicited';
type NetworkDirectOptions = KernelOptionsInput;
type NodeServerOptions = Pick<NodeSocketOptions, 'noDelay' | 'keepAlive' | 'keepAliveInitialDelay'>;
type ObjectKind = 'pd' | 'mr' | 'mw' | 'ah' | 'cq' | 'srq' | 'qp' | 'ring' | 'range';
type OptionsResult<T> = {
    readonly success: true;
    readonly data: T;
} | {
    readonly success: false;
    readonly error: OptionsError;
};
type PkeyTables = readonly number[] | Readonly<Record<string, readonly number[]>>;
type Refuse = (path: string, value: unknown, expected: string, size: number) => never;
type RequestHandler = (bytes: Buffer, request: IncomingRequest) => MessageBytes | undefined | Promise<MessageBytes | undefined>;
type RequestorMode = 'user' | 'kernel';
type StatusName = keyof typeof Status;
type UserVerbsMaker = (previous: (() => UserVerbs) | undefined) => Partial<UserVerbs>;
type UvpHandle = object | null;
type Value<S> = S extends FieldType<infer V, infer _> ? V : never;
type VisibleKey<F extends Fields, K extends keyof F & string> = F[K] extends ReservedType ? never : FieldKey<K>;
type WvCqNotifyType = 'any' | 'solicited' | 'errors';
type WvDirect = (typeof WvDirect)[keyof typeof WvDirect];
type WvDirectResult = (typeof WvDirectResult)[keyof typeof WvDirectResult];
type WvSrqEvent = 'limit' | 'lastWqe';
