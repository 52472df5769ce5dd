/**
 * The structures of every WinVerbs and IBAT IOCTL: pointer-free, the same for 32- and 64-bit callers. Field names are
 * those of the WinVerbs and IBAT interfaces. Sources: WinVerbs IOCTL interface; IBAT interface version 6; IBA 1 Annex
 * A11 (RDMA IP CM service) for IB_CMA_HEADER, IBA 1 §15.2.5.16 (PathRecord) for ib_path_rec_t.
 *
 * "Id" fields name objects of the device file; 0 is none. VerbInfo carries `ci_umv_buf_t.command` in and its `status`
 * out (provider-data.ts).
 *
 * An offset in a field's comment counts bytes from the start of its structure.
 */
export * from './structs-endpoints.js';
export * from './structs-objects.js';
