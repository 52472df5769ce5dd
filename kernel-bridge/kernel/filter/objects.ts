/** The objects of one open file of `\\.\WinVerbs`. */
import type { IbAl } from '../hca-driver/al.js';
import type { Hca, IbAv, IbCa, IbCq, IbMr, IbMw, IbPd, IbQp, IbSrq } from '../hca-driver/objects.js';
import type { DeviceObject } from '../io-manager/device.js';
import { IrpQueue } from '../io-manager/irp.js';
import type { EndpointConnection } from './endpoint-connection.js';
import type { AnyEndpoint } from './endpoint-types.js';
import { ObjectTable } from './object-table.js';

/** An open HCA. Port events accumulate in `flags` until a request takes them (WV_EVENT_*). */
export class WvDevice {
  ca: IbCa | undefined = undefined;
  /** Closes the HCA's file that the filter has opened. */
  closed: () => void = () => {};
  flags = 0;
  readonly portWaits = new IrpQueue();
}

/** A protection domain and its regions by lkey; regions have no ids of their own. */
export class WvPd {
  readonly regions = new Map<number, IbMr>();

  constructor(readonly pd: IbPd) {}
}

/** A queue pair, and the endpoint that uses it for a connection. */
export class WvQp {
  endpoint: EndpointConnection | undefined = undefined;

  constructor(readonly qp: IbQp) {}
}

/** The tables of one file. Ids are valid only in their own table. */
export class WvFile {
  closing = false;

  constructor(
    /** The client as which the filter opens HCAs. */
    readonly al: IbAl,
  ) {}

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
