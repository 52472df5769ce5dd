/** Numbers as text for a terminal. */

const units = ['', 'k', 'M', 'G', 'T'] as const;

/** A number with three or four digits: `0`, `512`, `1.25 k`, `31.4 M`. */
export function short(value: number): string {
  let [scaled, unit] = [value, 0];
  while (Math.abs(scaled) >= 999.5 && unit < units.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  if (unit === 0) return scaled >= 10 || Number.isInteger(scaled) ? scaled.toFixed(0) : scaled.toFixed(1);
  const digits = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return `${scaled.toFixed(digits)} ${units[unit]}`;
}

/** A number of bytes, such as `4 KiB`. */
export function bytes(value: number): string {
  const power = value < 1024 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), 4);
  const scaled = value / 1024 ** power;
  const text = Number.isInteger(scaled) || scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1);
  return `${text} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

/** A queue pair number; its upper byte is the slot. */
export const qpnText = (qpn: number): string => (qpn === 0 ? '' : `0x${qpn.toString(16).padStart(6, '0')}`);
