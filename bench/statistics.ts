/** The q-quantile (0..1) of samples, by nearest rank. Sorts its argument. */
export function quantile(samples: Float64Array, q: number): number {
  samples.sort();
  return samples[Math.min(samples.length - 1, Math.floor(q * samples.length))] ?? Number.NaN;
}

/** Bytes as people write them: 8, 4 KiB, 1 MiB. */
export function bytesText(bytes: number): string {
  if (bytes >= 1 << 20 && bytes % (1 << 20) === 0) return `${bytes >> 20} MiB`;
  if (bytes >= 1 << 10 && bytes % (1 << 10) === 0) return `${bytes >> 10} KiB`;
  return `${bytes}`;
}
