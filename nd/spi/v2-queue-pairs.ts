/** ND SPI v2: posting requests. */
import type { NdUnknown } from './types.js';
import type { IND2MemoryRegion, IND2MemoryWindow } from './v2.js';
import type { Nd2RemoteMemory, Nd2Sge } from './v2-types.js';

/**
 * IND2QueuePair {EEF2F332-B75D-4063-BCE3-3A0BAD2D02CE}: the queues of one connection.
 *
 * A request that throws was not queued and changed nothing. All of them throw NO_MORE_ENTRIES (the queue is full: take
 * results first), DATA_OVERRUN (too many scatter/gather entries), BUFFER_OVERFLOW (more bytes than the adapter
 * transfers, or than the queue pair takes INLINE), INVALID_HANDLE (memory of another instance, or not registered), ACCESS_VIOLATION (an
 * INLINE entry ends beyond its memory), and, except for Receive, CONNECTION_INVALID before there is a connection. After
 * its end they are accepted and end in CANCELED. Contexts are returned unchanged and need not be unique.
 *
 * Results: SUCCESS; CANCELED; ACCESS_VIOLATION (local memory: an entry ends beyond its region, or may not be written; a
 * Bind that is not allowed; the peer's memory: token, range or rights); DATA_OVERRUN (a message longer than its Receive); DATA_ERROR (the peer could not execute the
 * request; for instance its Receive was too short); IO_TIMEOUT (the peer is gone or posts no Receive);
 * INVALID_DEVICE_REQUEST (Invalidate of a window that is not bound); INTERNAL_ERROR. Any result but SUCCESS ends the
 * connection.
 * @example
 * ```ts
 * queuePair.receive('answer', [{ memory: region, offset: 4096, length: 4096 }]);
 * queuePair.send('question', [{ memory: region, offset: 0, length: 100 }]);
 * queuePair.send('short', [{ memory: Buffer.from('some bytes'), offset: 0, length: 10 }], Nd2OpFlag.INLINE);
 * queuePair.write('write', [{ memory: region, offset: 0, length: 4096 }], remote, 8192);
 * const { requestContext, status, bytesTransferred } = await nextResult(queue);
 * ```
 */
export interface IND2QueuePair extends NdUnknown {
  /** Scatter/gather entries that a Receive may have: at least as many as requested; 0 with a shared receive queue. */
  readonly maxReceiveRequestSge: number;
  /** Scatter/gather entries that a Send, Read or Write may have: at least as many as requested. */
  readonly maxInitiatorRequestSge: number;

  /**
   * Cancels all outstanding requests, each with a CANCELED result, in any state. The queue pair cannot be used
   * afterwards. It fails only on a released queue pair: INVALID_HANDLE.
   *
   * @see IND2QueuePair::Flush
   */
  flush(): void;

  /**
   * Sends one message to one Receive of the peer.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param flags - SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, INLINE; INVALID_PARAMETER_4 for unknown bits
   * @throws as every request, see {@link IND2QueuePair}; INVALID_PARAMETER_4
   * @see IND2QueuePair::Send
   */
  send(context: unknown, sgl: readonly Nd2Sge[], flags?: number): void;

  /**
   * Posts memory for one message; messages take Receives in order. Allowed in every state.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @throws INVALID_DEVICE_REQUEST if the queue pair has a shared receive queue
   * @see IND2QueuePair::Receive
   */
  receive(context: unknown, sgl: readonly Nd2Sge[]): void;

  /**
   * Opens `length` bytes at `offset` bytes into a region to the peer. The window's remote token is valid at once.
   *
   * @param context - any value; the result returns it
   * @param region - of the same adapter instance, with memory registered
   * @param window - of the same adapter instance
   * @param offset - bytes from the remote address; default 0
   * @param length - bytes, at least 1
   * @param flags - SILENT_SUCCESS, READ_FENCE, ALLOW_READ, ALLOW_WRITE; INVALID_PARAMETER_6 for unknown bits. With
   * neither ALLOW_READ nor ALLOW_WRITE the window opens nothing.
   * @throws INVALID_PARAMETER_2 (region), INVALID_PARAMETER_3 (window), INVALID_PARAMETER if the range leaves the region
   * or is empty, INVALID_DEVICE_STATE if the window is bound, ACCESS_VIOLATION for ALLOW_WRITE to a region without
   * ALLOW_LOCAL_WRITE
   * @see IND2QueuePair::Bind
   */
  bind(
    context: unknown,
    region: IND2MemoryRegion,
    window: IND2MemoryWindow,
    offset: number,
    length: number,
    flags?: number,
  ): void;

  /**
   * Withdraws the peer's access; the window can then be bound again.
   *
   * @param context - any value; the result returns it
   * @param window - of the same adapter instance
   * @param flags - SILENT_SUCCESS, READ_FENCE; INVALID_PARAMETER_3 for unknown bits
   * @throws INVALID_PARAMETER_2 (window)
   * @see IND2QueuePair::Invalidate
   */
  invalidate(context: unknown, window: IND2MemoryWindow, flags?: number): void;

  /**
   * Reads from `offset` bytes into the peer's memory, as many bytes as the scatter/gather entries hold. 0 bytes need no
   * valid memory and show whether the peer is alive.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - address and token of the peer's memory
   * @param offset - bytes from the remote address; default 0
   * @param flags - SILENT_SUCCESS, READ_FENCE; INVALID_PARAMETER_6 for unknown bits
   * @throws as every request, see {@link IND2QueuePair}; INVALID_PARAMETER_6
   * @see IND2QueuePair::Read
   */
  read(
    context: unknown,
    sgl: readonly Nd2Sge[],
    remote: Nd2RemoteMemory,
    offset?: number,
    flags?: number,
  ): void;

  /**
   * Writes at `offset` bytes into the peer's memory; the peer gets no completion.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - address and token of the peer's memory
   * @param offset - bytes from the remote address; default 0
   * @param flags - SILENT_SUCCESS, READ_FENCE, INLINE; INVALID_PARAMETER_6 for unknown bits
   * @throws as every request, see {@link IND2QueuePair}; INVALID_PARAMETER_6
   * @see IND2QueuePair::Write
   */
  write(
    context: unknown,
    sgl: readonly Nd2Sge[],
    remote: Nd2RemoteMemory,
    offset?: number,
    flags?: number,
  ): void;
}
