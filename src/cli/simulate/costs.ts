import { UsageError } from "../../errors.ts";
import { pricesOf, type PriceSource } from "../../simulate/costs/machine_prices.ts";
import { CostError } from "../../speculate/costs/parse.ts";
import { readNamed } from "../bench/files.ts";
import { isThere } from "../open/is_there.ts";
import { COST_NAMES } from "../options/measure/simulate_flags.ts";
import { didYouMean, nearest } from "../options/nearest.ts";
import { COST_PRESETS } from "./cost_presets.ts";

/** The machine of `--costs`: a preset by its name, or a file. @throws UsageError */
export function namedPrices(nameOrFile: string): PriceSource {
  const name = COST_NAMES.find((each) => each === nameOrFile);
  const refuse = (why: string) => new UsageError(`Cannot use "--costs ${nameOrFile}": ${why}`);
  try {
    return pricesOf(name === undefined ? json(nameOrFile, refuse) : COST_PRESETS[name]);
  } catch (error) {
    throw error instanceof CostError ? refuse(error.message) : error;
  }
}

function json(file: string, refuse: (why: string) => UsageError): unknown {
  const near = nearest(file, COST_NAMES);
  if (near.length > 0 && !isThere(file)) {
    throw refuse(`there is no such file or machine${didYouMean(near)}`);
  }
  const text = readNamed(file);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw refuse("it is not JSON");
  }
}
