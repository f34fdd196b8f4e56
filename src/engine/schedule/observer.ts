import { reason } from "../../errors.ts";

/**
 * Wraps a callback that belongs to the engine and to no request: if it throws, a warning is given and it is not called
 * again.
 *
 * @param name for the warning.
 */
export function observer<Of extends readonly unknown[]>(
  name: string,
  callback: (...of: Of) => void,
  onWarning: (line: string) => void,
): (...of: Of) => void {
  let failed = false;
  return (...of) => {
    if (failed) return;
    try {
      callback(...of);
    } catch (error) {
      failed = true;
      onWarning(`${name} failed and is not called again: ${reason(error)}`);
    }
  };
}
