/** Bytes for people, in powers of 1000: `1.2 GB`. */
export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** A share for people: 0.5 is `50.0%`. */
export function percentText(share: number, places: number = 1): string {
  return `${(share * 100).toFixed(places)}%`;
}
