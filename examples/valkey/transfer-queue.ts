/** What one connection of Valkey's RDMA transport has: a queue pair with its Receives, and registered memory. */
import {
  allocate,
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVDevice,
  QpAttr,
  QpState,
  type RemoteMemory,
  WvAccess,
  type WvMemoryRegion,
  WvSend,
  type WvSge,
} from 'networkdirect/winverbs';

/** Bytes of a command: no other message is valid. */
export const COMMAND_BYTES = 32;
/** Receives that are posted at any time. Each command or Write of the peer takes one, and a peer counts on them. */
const RECEIVES = 1024;
/** Requests that may be outstanding. */
export const SENDS = 1024;

/** No RDMA Reads; a peer that has no Receive posted is waited for (RNR retry 7: without end). */
export const CONNECT_PARAM = {
  responderResources: 1,
  initiatorDepth: 1,
  retryCount: 7,
  rnrRetryCount: 7,
} as const;

/** Bytes of the two buffers of a connection. */
export interface TransferSizes {
  /** The buffer that the peer writes to, 4 KiB to 16 MiB; default 1 MiB. */
  readonly receiveBytes?: number | undefined;
  /** Data on their way to the peer, 4 KiB to 16 MiB; default 1 MiB. */
  readonly sendBytes?: number | undefined;
}

function checkedSize(name: keyof TransferSizes, bytes = 2 ** 20): number {
  if (Number.isInteger(bytes) && bytes >= 4096 && bytes <= 2 ** 24) return bytes;
  throw new RangeError(`\`${name}\` must be a whole number from 4096 to 16777216; got ${bytes}.`);
}

export class TransferQueue {
  readonly cq: IWVCompletionQueue;
  readonly qp: IWVConnectQueuePair;
  /** The peer writes to it, and to nothing else. */
  readonly received: Buffer;
  readonly receivedRegion: WvMemoryRegion;
  /** Data to send, used in a circle. */
  readonly sending: Buffer;
  /** Commands of the peer, one place for each Receive, and behind them those to it, one for each request. */
  readonly #commands: Buffer;
  readonly #dataSge: readonly [WvSge];
  readonly #commandSge: readonly [WvSge];
  /** To be released, the last one made first. */
  readonly #made: { release(): number }[] = [];

  /** Takes over the references to `endpoint` and `device`. @throws WvError INSUFFICIENT_RESOURCES; NO_MEMORY */
  constructor(
    readonly endpoint: IWVConnectEndpoint,
    device: IWVDevice,
    { receiveBytes, sendBytes }: TransferSizes,
  ) {
    this.#made.unshift(endpoint, device);
    try {
      const pd = this.#keep(device.allocateProtectionDomain());
      this.cq = this.#keep(device.createCompletionQueue(RECEIVES + SENDS));
      const depths = { sendDepth: SENDS, sendSge: 1, receiveDepth: RECEIVES, receiveSge: 1 };
      const queues = { sendCq: this.cq, receiveCq: this.cq, initiatorDepth: 1, responderResources: 1 };
      this.qp = this.#keep(pd.createConnectQueuePair({ ...queues, ...depths }));
      this.qp.modify(
        { qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: WvAccess.REMOTE_WRITE },
        QpAttr.STATE | QpAttr.PKEY_INDEX | QpAttr.PORT_NUMBER | QpAttr.ACCESS_FLAGS,
      );
      this.received = bufferOf(checkedSize('receiveBytes', receiveBytes));
      this.receivedRegion = pd.registerMemory(this.received, WvAccess.REMOTE_WRITE);
      const dataBytes = checkedSize('sendBytes', sendBytes);
      const own = bufferOf(dataBytes + (RECEIVES + SENDS) * COMMAND_BYTES);
      this.sending = own.subarray(0, dataBytes);
      this.#commands = own.subarray(dataBytes);
      this.#dataSge = [{ region: pd.registerMemory(this.sending, 0), offset: 0, length: 0 }];
      const region = pd.registerMemory(this.#commands, WvAccess.LOCAL_WRITE);
      this.#commandSge = [{ region, offset: 0, length: COMMAND_BYTES }];
      // A message that finds no Receive waits, and so they are there before the connection is.
      for (let slot = 0; slot < RECEIVES; slot += 1) this.receive(slot);
    } catch (error) {
      this.release();
      throw error;
    }
  }

  #keep<T extends { release(): number }>(object: T): T {
    this.#made.unshift(object);
    return object;
  }

  /** The peer's command that has come to a Receive. */
  command(slot: number): Buffer {
    return this.#commands.subarray(slot * COMMAND_BYTES, (slot + 1) * COMMAND_BYTES);
  }

  /** Posts a Receive. */
  receive(slot: number): void {
    this.#commandSge[0].offset = slot * COMMAND_BYTES;
    this.qp.postReceive(slot, this.#commandSge);
  }

  /** The bytes of the command that is the request of this number, all zero. */
  newCommand(request: number): Buffer {
    return this.command(RECEIVES + (request % SENDS)).fill(0);
  }

  /** Posts the command of {@link newCommand}. */
  send(request: number, flags: number): void {
    this.#commandSge[0].offset = (RECEIVES + (request % SENDS)) * COMMAND_BYTES;
    this.qp.send(request, this.#commandSge, flags);
  }

  /** Posts a Write of bytes from `sending` that tells the peer how many they are. */
  write(request: number, flags: number, from: number, length: number, to: RemoteMemory, at: number): void {
    this.#dataSge[0].offset = from;
    this.#dataSge[0].length = length;
    this.qp.write(request, this.#dataSge, flags | WvSend.IMMEDIATE, to, at, length);
  }

  release(): void {
    for (const object of this.#made.splice(0)) object.release();
  }
}

/** Memory for the device: zeros. A peer on this host with the right to write reaches it without a copy by the kernel. */
function bufferOf(bytes: number): Buffer {
  const { buffer, byteOffset } = allocate(bytes);
  return Buffer.from(buffer, byteOffset, bytes);
}
