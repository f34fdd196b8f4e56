import { UsageError } from "../../errors.ts";
import { decimal } from "../options/decimal.ts";

const VARIABLE = "EYRIE_BANDWIDTH";

/**
 * The device's memory bandwidth in GB/s that the user names, with which `--table profile` and
 * `--table growth` compare; undefined: it is measured.
 *
 * @throws UsageError for a value that is no number above 0.
 */
export function namedBandwidth(
  value: string | undefined = Deno.env.get(VARIABLE),
): number | undefined {
  if (!value) return undefined;
  const gbps = decimal(value);
  if (gbps > 0) return gbps;
  throw new UsageError(`Cannot use "${VARIABLE}=${value}": allowed is GB/s, a number above 0`);
}
