/** Storage for the blocks of a namespace: in memory, or in a file or block device. */
import { type FileHandle, open, stat } from 'node:fs/promises';

/** The storage of a namespace. Positions and lengths must be within its size. */
export interface Store {
  /** Size in bytes. */
  readonly size: number;
  read(into: Uint8Array, position: number): Promise<void>;
  write(from: Uint8Array, position: number): Promise<void>;
  zero(length: number, position: number): Promise<void>;
  /** Resolves when all written data is on stable storage. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Creates a zeroed store in memory. */
export function memoryStore(size: number): Store {
  const bytes = Buffer.alloc(size);
  return {
    size,
    async read(into, position) {
      into.set(bytes.subarray(position, position + into.length));
    },
    async write(from, position) {
      bytes.set(from, position);
    },
    async zero(length, position) {
      bytes.fill(0, position, position + length);
    },
    async flush() {},
    async close() {},
  };
}

const ZEROS = new Uint8Array(1 << 20);

/**
 * Creates a store in a file or a block device.
 *
 * @param size - size in bytes; shorter files are extended. Default: the current size
 * @throws RangeError if the file is empty and `size` is not given
 */
export async function fileStore(path: string, size?: number): Promise<Store> {
  const before = await stat(path).catch(() => undefined);
  const file = await open(path, before === undefined ? 'w+' : 'r+');
  try {
    const present = await sizeOf(file);
    if (size !== undefined && present < size) await file.truncate(size);
    const bytes = size ?? present;
    if (bytes === 0) throw new RangeError(`${path} is empty. Specify its size.`);
    return new FileStore(file, bytes);
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function sizeOf(file: FileHandle): Promise<number> {
  const info = await file.stat();
  if (!info.isBlockDevice()) return info.size;
  // The position of the last readable byte determines the size of a device.
  let [low, high] = [0, 2 ** 50];
  const probe = Buffer.alloc(1);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const { bytesRead } = await file.read(probe, 0, 1, middle - 1);
    if (bytesRead === 1) low = middle;
    else high = middle;
  }
  return low;
}

class FileStore implements Store {
  constructor(
    private readonly file: FileHandle,
    readonly size: number,
  ) {}

  async read(into: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < into.length; ) {
      const { bytesRead } = await this.file.read(into, done, into.length - done, position + done);
      if (bytesRead === 0) throw new Error(`The file is shorter than ${position + into.length} bytes.`);
      done += bytesRead;
    }
  }

  async write(from: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < from.length; ) {
      const { bytesWritten } = await this.file.write(from, done, from.length - done, position + done);
      done += bytesWritten;
    }
  }

  async zero(length: number, position: number): Promise<void> {
    for (let done = 0; done < length; done += ZEROS.length) {
      await this.write(ZEROS.subarray(0, Math.min(ZEROS.length, length - done)), position + done);
    }
  }

  flush(): Promise<void> {
    return this.file.datasync();
  }

  close(): Promise<void> {
    return this.file.close();
  }
}
