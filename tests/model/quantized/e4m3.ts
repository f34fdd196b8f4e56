/** The value of a byte of FP8 e4m3fn (https://arxiv.org/abs/2209.05433, table 1). */
export function e4m3(byte: number): number {
  const sign = byte & 0x80 ? -1 : 1;
  const [exponent, mantissa] = [byte >>> 3 & 15, byte & 7];
  if (exponent === 0) return sign * mantissa / 8 * 2 ** -6;
  return sign * (1 + mantissa / 8) * 2 ** (exponent - 7);
}
