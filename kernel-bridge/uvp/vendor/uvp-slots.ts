/** The functions of a user-mode verbs provider, in the order of the table that `uvp_get_interface` fills. */

/** Types of arguments and results in koffi: handle, address, 32-bit integer, 64-bit integer. */
const h = 'uintptr_t';
const p = 'uintptr_t';
const u32 = 'uint32_t';
const u64 = 'uint64_t';

/** One function of the table. */
export interface UvpSlot {
  readonly name: string;
  readonly result: string;
  /** Undefined if this library never calls the function. */
  readonly parameters: readonly string[] | undefined;
  /** Whether a provider without the function is refused. */
  readonly mandatory: boolean;
}

/** A function that returns an `ib_api_status_t`. */
const hook = (...parameters: readonly string[]) => ({ result: u32, parameters, mandatory: false });
const mandatory = (...parameters: readonly string[]) => ({ result: u32, parameters, mandatory: true });
const procedure = (...parameters: readonly string[]) => ({ result: 'void', parameters, mandatory: false });
const unused = { result: 'void', parameters: undefined, mandatory: false };

const table = {
  pre_open_ca: hook(u64, p, p),
  post_open_ca: hook(u64, u32, p, p),
  pre_query_ca: unused,
  post_query_ca: unused,
  pre_modify_ca: unused,
  post_modify_ca: unused,
  pre_close_ca: hook(h),
  post_close_ca: hook(h, u32),
  pre_ci_call: unused,
  post_ci_call: unused,
  pre_allocate_pd: hook(h, p, p),
  post_allocate_pd: procedure(h, u32, p, p),
  pre_deallocate_pd: hook(h),
  post_deallocate_pd: procedure(h, u32),
  pre_create_av: hook(h, p, p, p),
  post_create_av: procedure(h, u32, p, p),
  pre_query_av: unused,
  post_query_av: unused,
  pre_modify_av: unused,
  post_modify_av: unused,
  pre_destroy_av: hook(h),
  post_destroy_av: procedure(h, u32),
  pre_create_srq: hook(h, p, p, p),
  post_create_srq: procedure(h, u32, p, p),
  pre_modify_srq: hook(h, p, u32, p),
  post_modify_srq: procedure(h, u32, p),
  pre_query_srq: hook(h, p),
  post_query_srq: procedure(h, u32, p, p),
  pre_destroy_srq: hook(h),
  post_destroy_srq: procedure(h, u32),
  pre_create_qp: unused,
  post_create_qp: hook(h, u32, p, p),
  pre_modify_qp: unused,
  post_modify_qp: unused,
  pre_query_qp: unused,
  post_query_qp: unused,
  pre_destroy_qp: hook(h),
  post_destroy_qp: procedure(h, u32),
  pre_create_cq: hook(h, p, p, p),
  post_create_cq: procedure(h, u32, u32, p, p),
  pre_query_cq: unused,
  post_query_cq: unused,
  pre_resize_cq: hook(h, p, p),
  post_resize_cq: procedure(h, u32, u32, p),
  pre_destroy_cq: hook(h),
  post_destroy_cq: procedure(h, u32),
  pre_create_mw: hook(h, p, p),
  post_create_mw: procedure(h, u32, u32, p, p),
  pre_query_mw: unused,
  post_query_mw: unused,
  pre_destroy_mw: hook(h),
  post_destroy_mw: procedure(h, u32),
  bind_mw: hook(h, h, p, p),
  post_send: mandatory(h, p, p),
  post_recv: mandatory(h, p, p),
  post_srq_recv: hook(h, p, p),
  peek_cq: hook(h, p),
  poll_cq: unused,
  rearm_cq: mandatory(h, u32),
  rearm_n_cq: hook(h, u32),
  pre_attach_mcast: unused,
  post_attach_mcast: unused,
  pre_detach_mcast: unused,
  post_detach_mcast: unused,
  nd_modify_qp: { result: 'void', parameters: [h, p, p], mandatory: true },
  nd_get_qp_state: hook(h),
  wv_pre_create_qp: mandatory(h, p, p, p),
  poll_cq_array: { result: 'int32_t', parameters: [h, 'int32_t', p], mandatory: true },
} as const;

/** The name of a function of the table. */
export type UvpSlotName = keyof typeof table;

export const uvpSlots: readonly (UvpSlot & { readonly name: UvpSlotName })[] = Object.entries(table).map(
  ([name, slot]) => ({ name: name as UvpSlotName, ...slot }),
);
