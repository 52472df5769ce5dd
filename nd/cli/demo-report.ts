import Table from 'cli-table3';

export interface LatencyRow {
  readonly bytes: number;
  readonly messages: number;
  /** Half of the round-trip time, in µs. */
  readonly median: number;
  readonly p99: number;
}

export interface BandwidthRow {
  readonly operation: 'RDMA Write' | 'RDMA Read';
  readonly requestBytes: number;
  readonly totalBytes: number;
  readonly seconds: number;
}

/** Number and results of the requests that were outstanding when the connection ended. */
export interface DisconnectRow {
  readonly side: 'client' | 'server';
  readonly requests: string;
  readonly outstanding: number;
  readonly succeeded: number;
  readonly canceled: number;
}

export interface Report {
  readonly localAddress: string;
  readonly peerAddress: string;
  /** Private data of the peer's request or reply. */
  readonly privateData: string;
  readonly latency: readonly LatencyRow[];
  readonly bandwidth: readonly BandwidthRow[];
  readonly disconnect: readonly DisconnectRow[];
}

const style = { head: [], border: [], compact: true };

/** Formats the report as text tables. */
export function formatReport(report: Report): string {
  const parts = [
    `Connected ${report.localAddress} to ${report.peerAddress}; the peer's private data: "${report.privateData}"`,
  ];
  if (report.latency.length > 0) {
    const table = new Table({
      head: ['Send ping-pong', 'round trips', 'median µs', 'p99 µs', 'contents'],
      colAligns: ['left', 'right', 'right', 'right', 'left'],
      style,
    });
    for (const row of report.latency) {
      table.push([
        formatBytes(row.bytes),
        row.messages,
        row.median.toFixed(1),
        row.p99.toFixed(1),
        'all equal',
      ]);
    }
    parts.push(table.toString());
  }
  if (report.bandwidth.length > 0) {
    const table = new Table({
      head: ['Stream', 'request', 'total', 'MB/s', 'contents'],
      colAligns: ['left', 'right', 'right', 'right', 'left'],
      style,
    });
    for (const row of report.bandwidth) {
      table.push([
        row.operation,
        formatBytes(row.requestBytes),
        formatBytes(row.totalBytes),
        (row.totalBytes / row.seconds / 1e6).toFixed(0),
        'all equal',
      ]);
    }
    parts.push(table.toString());
  }
  const table = new Table({
    head: ['Disconnect', 'requests', 'outstanding', 'succeeded', 'canceled', 'lost'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right'],
    style,
  });
  for (const row of report.disconnect) {
    const lost = row.outstanding - row.succeeded - row.canceled;
    table.push([row.side, row.requests, row.outstanding, row.succeeded, row.canceled, lost]);
  }
  parts.push(table.toString());
  return parts.join('\n');
}

function formatBytes(bytes: number): string {
  if (bytes >= 1 << 20) return `${bytes / (1 << 20)} MiB`;
  return bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`;
}
