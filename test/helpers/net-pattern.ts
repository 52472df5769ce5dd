/** A pattern of bytes that differ between positions. */
export function patternOf(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i += 1) bytes[i] = (i * 31 + (i >>> 8) * 7 + length) & 0xff;
  return bytes;
}
