/** What one open file of `\\.\WinVerbs` owns. */
import type { Hca, IbAv, IbCa, IbCq, IbMr, IbMw, IbPd, IbQp, IbSrq } from '../hca-driver/objects.js';
import type { DeviceObject } from '../io-manager/device.js';
import { IrpQueue } from '../io-manager/irp.js';
import type { EndpointConnection } from './endpoint-connection.js';
import type { AnyEndpoint } from './endpoint-types.js';
import { ObjectTable } from './object-table.js';

/** An opened HCA. Port events accumulate in `flags` until somebody asks (WV_EVENT_*). */
export class WvDevice {
  ca: IbCa | undefined = undefined;
  /** Ends the filter's own use of the HCA's file. */
  closed: () => void = () => {};
  flags = 0;
  readonly portWaits = new IrpQueue();
}

/** A protection domain and its regions by lkey: regions have no ids of their own. */
export class WvPd {
  readonly regions = new Map<number, IbMr>();

  constructor(readonly pd: IbPd) {}
}

/** A queue pair, and the endpoint that has it in a connection. */
export class WvQp {
  endpoint: EndpointConnection | undefined = undefined;

  constructor(readonly qp: IbQp) {}
}

/** The tables of one file. Ids of one table mean nothing in another. */
export class WvFile {
  closing = false;
  /** The HCA's device, if this is an HCA's own file and not `\\.\WinVerbs`. */
  hcaDevice: DeviceObject<Hca> | undefined = undefined;
  readonly devices = new ObjectTable<WvDevice>();
  readonly cqs = new ObjectTable<IbCq>();
  readonly pds = new ObjectTable<WvPd>();
  readonly srqs = new ObjectTable<IbSrq>();
  readonly qps = new ObjectTable<WvQp>();
  readonly mws = new ObjectTable<IbMw>();
  readonly ahs = new ObjectTable<IbAv>();
  readonly endpoints = new ObjectTable<AnyEndpoint>();

  /** Objects of all kinds. */
  get objectCount(): number {
    const tables = [
      this.devices,
      this.cqs,
      this.pds,
      this.srqs,
      this.qps,
      this.mws,
      this.ahs,
      this.endpoints,
    ];
    return tables.reduce((sum, table) => sum + table.size, 0);
  }
}
