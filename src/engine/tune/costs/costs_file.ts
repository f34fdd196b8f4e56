/**
 * Measured cost tables, stored next to tuning.json in one JSON file of the user's cache folder:
 *
 *     { "format": "eyrie-costs-cache-1", "tables": { KEY: CostTable } }
 *
 * KEY is `costsKey`. A writer reads the file again, replaces its own table and drops those that cannot be read.
 */
import { reason, UsageError } from "../../../errors.ts";
import { isObject } from "../../../objects.ts";
import { CostError, parseCosts } from "../../../speculate/costs/parse.ts";
import type { CostTable } from "../../../speculate/costs/table.ts";
import { replaceFile } from "../replace_file.ts";
import { tuningPath } from "../tuning_file.ts";

const FORMAT = "eyrie-costs-cache-1";

/** What a table is valid for. */
export interface CostsOf {
  /** `adapterKey` */
  readonly adapter: string;
  /** With what it is quantized to. */
  readonly model: string;
  readonly draft: string | undefined;
  /** Sizes of both, which distinguish models of the same name. */
  readonly weightBytes: number;
  readonly kvDtype: string;
}

/** Where the file is; undefined where no home folder is known. */
export function costsPath(tuning: string | undefined = tuningPath()): string | undefined {
  return tuning?.replace(/[^/]*$/, "costs.json");
}

export function costsKey({ adapter, model, draft, weightBytes, kvDtype }: CostsOf): string {
  return `${adapter}; ${model}, draft ${draft ?? "none"}, ${weightBytes} bytes, kv ${kvDtype}`;
}

/** The file's tables; none where there is no file. A file or a table that cannot be read is a warning. */
export function readCosts(
  path: string,
  onWarning: (line: string) => void,
): ReadonlyMap<string, CostTable> {
  const warn = (what: string, error: unknown) =>
    onWarning(`cannot use ${what} "${path}": ${reason(error)}; measuring again`);
  const found = new Map<string, CostTable>();
  let tables: Readonly<Record<string, unknown>>;
  try {
    tables = parseCache(JSON.parse(Deno.readTextFileSync(path)));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) warn("the cost tables", error);
    return found;
  }
  for (const [key, table] of Object.entries(tables)) {
    try {
      found.set(key, parseCosts(table));
    } catch (error) {
      warn(`the table "${key}" of`, error);
    }
  }
  return found;
}

/** Puts a table into the file. A folder that takes no file is a warning. */
export function writeCosts(
  path: string,
  key: string,
  table: CostTable,
  onWarning: (line: string) => void,
): void {
  const tables = Object.fromEntries([...readCosts(path, () => {}), [key, table]]);
  try {
    replaceFile(path, `${JSON.stringify({ format: FORMAT, tables }, null, 1)}\n`);
  } catch (error) {
    onWarning(`cannot write the cost tables "${path}": ${reason(error)}`);
  }
}

/** The table of a file that the person named. @throws UsageError where it cannot be used. */
export function readCostFile(path: string): CostTable {
  try {
    return parseCosts(JSON.parse(Deno.readTextFileSync(path)));
  } catch (error) {
    throw new UsageError(`Cannot use the cost file "${path}": ${reason(error)}`, { cause: error });
  }
}

/** @throws CostError when it is not this format. */
function parseCache(json: unknown): Readonly<Record<string, unknown>> {
  const { format, tables } = fieldsOf(json);
  if (format !== FORMAT) throw new CostError(`its format is not "${FORMAT}"`);
  return fieldsOf(tables);
}

function fieldsOf(json: unknown): Readonly<Record<string, unknown>> {
  if (isObject(json)) return json;
  throw new CostError("it holds no cost tables");
}
