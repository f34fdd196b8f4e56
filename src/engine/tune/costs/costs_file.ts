/**
 * Measured cost tables, stored next to tuning.json in one JSON file of the user's cache folder:
 *
 *     { "format": "eyrie-costs-cache-1", "tables": { KEY: CostTable } }
 *
 * KEY is `costsKey`. A writer reads the file again and replaces its own table.
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

/** The table of a key; undefined where there is none. A file or a table that cannot be read is a warning. */
export function readCosts(
  path: string,
  key: string,
  onWarning: (line: string) => void,
): CostTable | undefined {
  try {
    const tables = readTables(path);
    return Object.hasOwn(tables, key) ? parseCosts(tables[key]) : undefined;
  } catch (error) {
    onWarning(`cannot use the cost tables "${path}": ${reason(error)}; measuring again`);
    return undefined;
  }
}

/** The file summed up. */
export interface CostsContents {
  /** Undefined where no home folder is known. */
  readonly path: string | undefined;
  /** The number of tables of each adapter, which is named by `adapterKey`. */
  readonly adapters: readonly { readonly adapter: string; readonly tables: number }[];
  /** Why the file, or one of its tables, cannot be read; undefined if everything was read. */
  readonly problem: string | undefined;
}

/** Reads the file for `doctor`. A file or a table that cannot be read is a `problem`, not an error. */
export function lookAtCosts(path: string | undefined): CostsContents {
  if (path === undefined) return { path, adapters: [], problem: undefined };
  const counts = new Map<string, number>();
  let problem: string | undefined;
  const look = (what: string, read: () => void) => {
    try {
      read();
    } catch (error) {
      problem ??= `cannot use ${what} "${path}": ${reason(error)}`;
    }
  };
  look("the cost tables", () => {
    for (const [key, table] of Object.entries(readTables(path))) {
      look(`the table "${key}" of`, () => {
        const { adapter } = parseCosts(table);
        counts.set(adapter, (counts.get(adapter) ?? 0) + 1);
      });
    }
  });
  return { path, adapters: [...counts].map(([adapter, tables]) => ({ adapter, tables })), problem };
}

/**
 * Puts a table into the file, and leaves the others as they are, also those that another version wrote and this one
 * cannot read. A folder that takes no file is a warning.
 */
export function writeCosts(
  path: string,
  key: string,
  table: CostTable,
  onWarning: (line: string) => void,
): void {
  let others: Readonly<Record<string, unknown>> = {};
  try {
    others = readTables(path);
  } catch {
    // A file that cannot be read is written anew.
  }
  const tables = { ...others, [key]: table };
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

/** The file's tables by key, unread; none where there is no file. @throws Error when it is not this format. */
function readTables(path: string): Readonly<Record<string, unknown>> {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return {};
    throw error;
  }
  const { format, tables } = fieldsOf(JSON.parse(text));
  if (format !== FORMAT) throw new CostError(`its format is not "${FORMAT}"`);
  return fieldsOf(tables);
}

function fieldsOf(json: unknown): Readonly<Record<string, unknown>> {
  if (isObject(json)) return json;
  throw new CostError("it holds no cost tables");
}
