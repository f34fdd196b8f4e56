/** The number that a byte of FP8 (e4m3) stands for: a sign, 4 bits of exponent (bias 7), 3 of mantissa. */
export function e4m3(byte: number): number {
  const [exponent, mantissa] = [byte >>> 3 & 15, byte & 7];
  const size = exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10);
  return byte < 128 ? size : -size;
}
