/** TCP connections for tools that connect their queue pairs without RDMA CM. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** Connects to a server. @throws Error with its name if it is not listening */
export async function dial(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true });
  try {
    await once(socket, 'connect');
  } catch (error) {
    throw new Error(`Cannot connect to ${host} port ${port}: is the server running?`, { cause: error });
  }
  return socket;
}

/** Waits for one client. */
export async function answer(port: number, ready: () => void): Promise<Socket> {
  const server = createServer({ noDelay: true });
  server.listen(port, '::');
  await once(server, 'listening');
  ready();
  const [socket] = (await once(server, 'connection')) as [Socket];
  server.close();
  return socket;
}

/** Reads a socket's bytes in parts of requested sizes. */
export class Reader {
  private held = Buffer.alloc(0);
  private ended = false;
  private wake: (() => void) | undefined = undefined;

  constructor(private readonly socket: Socket) {
    socket.on('data', (bytes: Buffer) => {
      this.held = Buffer.concat([this.held, bytes]);
      this.wake?.();
    });
    const end = () => {
      this.ended = true;
      this.wake?.();
    };
    socket.once('end', end).once('error', end);
  }

  private async until(enough: () => number): Promise<Buffer> {
    for (;;) {
      const length = enough();
      if (length > 0) {
        const taken = this.held.subarray(0, length);
        this.held = this.held.subarray(length);
        return taken;
      }
      if (this.ended) throw new Error('The peer has closed its TCP connection.');
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  /** Reads exactly `length` bytes. */
  bytes(length: number): Promise<Buffer> {
    return this.until(() => (this.held.length >= length ? length : 0));
  }

  /** Reads a line, including its end. */
  async line(): Promise<string> {
    return (await this.until(() => this.held.indexOf(10) + 1)).toString();
  }

  close(): void {
    this.socket.end();
  }
}
