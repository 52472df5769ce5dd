import { type Nd2AdapterInfo, openNetworkDirect2, readNdProviders } from '../index.js';

/** A vendor's NetworkDirect provider in a report. */
export interface ReportedProvider {
  readonly library: string;
  readonly protocol: string;
  readonly id: string;
  readonly version: string;
  /** Limits of its adapters, without their ids. */
  readonly adapters: readonly Omit<Nd2AdapterInfo, 'adapterId'>[];
  /** Why there are none. */
  readonly failure?: string;
}

/** The NetworkDirect providers of this system, each as far as it can be opened; folders may name users, and are left out. */
export function reportProviders(): ReportedProvider[] {
  const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
  try {
    return readNdProviders().map(({ library, protocol, id, version }) => {
      const entry = { library, protocol, id, version };
      try {
        return { ...entry, adapters: adaptersOf(library) };
      } catch (error) {
        return { ...entry, adapters: [], failure: textOf(error) };
      }
    });
  } catch (error) {
    const none = { library: '', protocol: '', id: '', version: '', adapters: [] };
    return [{ ...none, failure: textOf(error) }];
  }
}

function adaptersOf(library: string): Omit<Nd2AdapterInfo, 'adapterId'>[] {
  using provider = openNetworkDirect2({ hca: library });
  const ids = new Set(provider.queryAddressList().map((address) => provider.resolveAddress(address)));
  return [...ids].map((id) => {
    using adapter = provider.openAdapter(id);
    const { adapterId, ...info } = adapter.query();
    return info;
  });
}
