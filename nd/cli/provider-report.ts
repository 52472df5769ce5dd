import { type Nd2AdapterInfo, openNetworkDirect2, readNdProviders } from '../index.js';

/** A vendor's NetworkDirect provider, as reported. */
export interface ReportedProvider {
  readonly library: string;
  readonly protocol: string;
  readonly id: string;
  readonly version: string;
  /** Limits of the adapters, without ids. */
  readonly adapters: readonly Omit<Nd2AdapterInfo, 'adapterId'>[];
  /** Why the provider could not be opened. */
  readonly failure?: string;
}

/** Reports the NetworkDirect providers of this host. Folders are omitted, because they may contain user names. */
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
