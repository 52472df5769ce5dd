/** All kinds of memory that can be registered, and all ways in which JavaScript detaches a buffer's memory. */
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { MessageChannel } from 'node:worker_threads';
import { allocate } from '../../winverbs/index.js';

/** A buffer to register, and the object that keeps it alive. */
export interface Memory {
  readonly view: Uint8Array;
  readonly wasm?: WasmMemory;
}

/** The types of Node.js do not include WebAssembly. */
interface WasmMemory {
  readonly buffer: ArrayBufferLike;
  grow(pages: number): number;
}

function wasmMemory(descriptor: object): Memory {
  const { Memory } = (globalThis as unknown as { WebAssembly: { Memory: new (of: object) => WasmMemory } })
    .WebAssembly;
  const wasm = new Memory(descriptor);
  return { wasm, view: new Uint8Array(wasm.buffer) };
}

/** A WebAssembly memory also has this size. */
export const BYTES = 65536;

export const memories: Readonly<Record<string, () => Memory>> = {
  plain: () => ({ view: new Uint8Array(BYTES) }),
  'a part of one': () => ({ view: new Uint8Array(2 * BYTES).subarray(4096, 4096 + BYTES) }),
  shared: () => ({ view: new Uint8Array(new SharedArrayBuffer(BYTES)) }),
  'allocate()': () => ({ view: allocate(BYTES) }),
  WebAssembly: () => wasmMemory({ initial: 1, maximum: 4 }),
  'WebAssembly without a maximum': () => wasmMemory({ initial: 1 }),
  'shared WebAssembly': () => wasmMemory({ initial: 1, maximum: 4, shared: true }),
};

/** A view of the same buffer for a stream. It starts at the beginning, as files of Node.js 20 require. */
const given = (view: Uint8Array): Uint8Array => new Uint8Array(view.buffer as ArrayBuffer, 0, 16);

async function readInto(stream: ReadableStream, view: Uint8Array): Promise<void> {
  const reader = stream.getReader({ mode: 'byob' });
  await reader.read(given(view));
  await reader.cancel();
}

/** Does nothing if this version of Node.js lacks the method. */
function transferBy(name: string, view: Uint8Array): void {
  const method: unknown = Reflect.get(ArrayBuffer.prototype, name);
  if (typeof method === 'function') Reflect.apply(method, view.buffer, []);
}

/** Each may throw, because some detachments are rejected. */
export const ways: Readonly<Record<string, (memory: Memory) => void | Promise<void>>> = {
  structuredClone: ({ view }) => {
    structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] });
  },
  postMessage: ({ view }) => {
    const { port1 } = new MessageChannel();
    try {
      port1.postMessage(view.buffer, [view.buffer as ArrayBuffer]);
    } finally {
      port1.close();
    }
  },
  transfer: ({ view }) => transferBy('transfer', view),
  transferToFixedLength: ({ view }) => transferBy('transferToFixedLength', view),
  'a read of a byte stream': ({ view }) =>
    readInto(
      new ReadableStream({ type: 'bytes', pull: (controller) => controller.enqueue(new Uint8Array(16)) }),
      view,
    ),
  'enqueue into a byte stream': ({ view }) => {
    new ReadableStream({ type: 'bytes', start: (controller) => controller.enqueue(given(view)) });
  },
  'the body of a response': ({ view }) => readInto(new Response(new Uint8Array(64)).body!, view),
  'a blob': ({ view }) => readInto(new Blob([new Uint8Array(64)]).stream(), view),
  'a file': async ({ view }) => {
    const file = await open(fileURLToPath(import.meta.url));
    try {
      await readInto(file.readableWebStream({ type: 'bytes' } as object) as ReadableStream, view);
    } finally {
      await file.close();
    }
  },
  'WebAssembly growth': ({ wasm }) => {
    wasm?.grow(1);
  },
};
