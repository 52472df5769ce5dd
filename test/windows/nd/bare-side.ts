/** The door to a provider without the SPI, for tests: an adapter with its file, and the objects of one side of a connection. */
import {
  adoptFile,
  argumentMemory,
  ComObject,
  closeFile,
  encodeSockaddr,
  type InterfaceName,
  loadProvider,
  memoryPins,
  type OverlappedName,
  OverlappedObject,
  providersVariable,
  ResultWord,
  readCatalogue,
  SgeWord,
} from '../../../kernel-bridge/windows/nd-provider/index.js';
import { allocate } from '../../../winverbs/index.js';
import { ADAPTER_ID, PROVIDER } from './nd2-standin.js';

/** ND_MR_FLAG_*: all rights, and DO_NOT_SECURE_VM. */
export const ALL_RIGHTS = 0x8000_000f;
export const LOOPBACK4 = { family: 4, address: '127.0.0.1', port: 0 } as const;

/** Loads the provider with this path. */
export function providerAt(path = PROVIDER): ComObject<'IND2Provider'> {
  const [entry] = readCatalogue('', { [providersVariable]: path });
  return loadProvider(entry!);
}

export class BareAdapter {
  readonly provider: ComObject<'IND2Provider'>;
  readonly adapter: ComObject<'IND2Adapter'>;
  readonly file: number;
  readonly #made: ComObject[] = [];
  #references = 1;

  constructor(path = PROVIDER) {
    this.provider = providerAt(path);
    this.adapter = new ComObject(
      'IND2Adapter',
      this.provider.make('OpenAdapter', 'IND2Adapter', ADAPTER_ID),
      this.provider.library,
    );
    const out = argumentMemory(8);
    this.adapter.run('CreateOverlappedFile', out.address);
    this.file = out.words[0]!;
    if (!adoptFile(this.file)) throw new Error('The completion port does not accept the file.');
  }

  /** Creates an object with overlapped requests. */
  overlapped<I extends OverlappedName>(name: I, ...values: readonly unknown[]): OverlappedObject<I> {
    const method = `Create${name.slice('IND2'.length)}` as 'CreateConnector';
    const address = this.adapter.make(method, name, this.file, ...values);
    return this.#keep(new OverlappedObject(name, address, this.adapter.library, this));
  }

  /** Creates an object without overlapped requests. */
  plain<I extends InterfaceName>(name: I, ...values: readonly unknown[]): ComObject<I> {
    const method = `Create${name.slice('IND2'.length)}` as 'CreateQueuePair';
    return this.#keep(new ComObject(name, this.adapter.make(method, name, ...values), this.adapter.library));
  }

  completionQueue(depth = 64): OverlappedObject<'IND2CompletionQueue'> {
    return this.overlapped('IND2CompletionQueue', depth, 0, 0);
  }

  queuePair(queue: ComObject, context = 0): ComObject<'IND2QueuePair'> {
    return this.plain('IND2QueuePair', queue.address, queue.address, context, 16, 16, 4, 4, 64);
  }

  release(): void {
    for (const object of this.#made.reverse()) object.release();
    this.releaseInternalRef();
  }

  addInternalRef(): void {
    this.#references++;
  }

  releaseInternalRef(): void {
    if (--this.#references > 0) return;
    this.adapter.release();
    closeFile(this.file);
  }

  #keep<T extends ComObject>(object: T): T {
    this.#made.push(object);
    return object;
  }
}

/** A queue pair with its completion queue, a connector, and 4096 registered bytes. */
export class BareSide {
  readonly queue: OverlappedObject<'IND2CompletionQueue'>;
  readonly queuePair: ComObject<'IND2QueuePair'>;
  readonly connector: OverlappedObject<'IND2Connector'>;
  readonly region: OverlappedObject<'IND2MemoryRegion'>;
  readonly bytes = allocate(4096);
  readonly #pins = memoryPins();
  readonly #pin = this.#pins.pin(this.bytes);
  readonly #sge = argumentMemory(16 * 8);
  readonly #results = argumentMemory(32 * 16);

  constructor(at: BareAdapter, context: number) {
    this.queue = at.completionQueue();
    this.queuePair = at.queuePair(this.queue, context);
    this.connector = at.overlapped('IND2Connector');
    this.region = at.overlapped('IND2MemoryRegion');
    this.region.finish('Register', () => [this.address, this.bytes.length, ALL_RIGHTS]);
  }

  get address(): number {
    return this.#pin.address;
  }

  /** Writes a scatter/gather list of parts of the memory and returns its address. */
  sgl(...pieces: readonly (readonly [at: number, length: number])[]): number {
    const { words } = this.#sge;
    const token = this.region.call('GetLocalToken');
    for (const [i, [at, length]] of pieces.entries()) {
      const address = this.address + at;
      const word = SgeWord.size * i;
      words[word] = address;
      words[word + 1] = address / 2 ** 32;
      words[word + SgeWord.length] = length;
      words[word + SgeWord.token] = token;
    }
    return this.#sge.address;
  }

  results() {
    const { words, address } = this.#results;
    const count = this.queue.call('GetResults', address, 16);
    return Array.from({ length: count }, (_, i) => {
      const at = ResultWord.size * i;
      return {
        status: words[at + ResultWord.status]!,
        bytes: words[at + ResultWord.bytes]!,
        context: words[at + ResultWord.request]!,
        queuePair: words[at + ResultWord.queuePair]!,
        type: words[at + ResultWord.type]!,
      };
    });
  }

  /** Deregisters the memory. The adapter releases the objects. */
  end(): void {
    this.region.finish('Deregister');
    this.#pins.unpin(this.#pin);
  }
}

/** Encodes a sockaddr. Returns its address and length as arguments. */
export function sockaddr(of: { family: 4; address: string; port: number }): readonly [number, number] {
  const memory = argumentMemory(28);
  memory.bytes.set(encodeSockaddr(of));
  return [memory.address, 16];
}

/** Connects two sides of one adapter. */
export async function join(at: BareAdapter, a: BareSide, b: BareSide): Promise<void> {
  const listener = at.overlapped('IND2Listener');
  listener.run('Bind', ...sockaddr(LOOPBACK4));
  listener.run('Listen', 1);
  const to = argumentMemory(28);
  const size = argumentMemory(8);
  size.words[0] = 28;
  listener.run('GetLocalAddress', to.address, size.address);
  const requested = listener.start('GetConnectionRequest', () => [b.connector.address]);
  a.connector.run('Bind', ...sockaddr(LOOPBACK4));
  const connected = a.connector.start('Connect', () => [a.queuePair.address, to.address, 16, 8, 8, 0, 0]);
  await requested;
  const accepted = b.connector.start('Accept', () => [b.queuePair.address, 8, 8, 0, 0]);
  await connected;
  await a.connector.start('CompleteConnect', () => []);
  await accepted;
  listener.release();
}
