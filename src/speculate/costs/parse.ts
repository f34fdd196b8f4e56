import { isObject } from "../../objects.ts";
import { COST_FORMAT, type CostTable, type Point, type Refined, type RoundRatio } from "./table.ts";

/** A cost file that cannot be used; callers turn it into a line for the user. */
export class CostError extends Error {
  override readonly name: string = "CostError";
}

type Fields = Readonly<Record<string, unknown>>;

const LISTS = ["level", "verify", "extend", "catchUp", "prefill"] as const;
const KNOWN: readonly string[] = [
  "format",
  "adapter",
  "model",
  "draft",
  "buckets",
  ...LISTS,
  "perCell",
  "perRowCell",
  "host",
  "packing",
  "fitError",
  "refined",
];

/**
 * Checks a cost table from its JSON file. Lists must be as `fitCosts` makes them: counts rise, milliseconds
 * do not fall.
 *
 * @throws CostError naming the first thing that is wrong.
 */
export function parseCosts(json: unknown): CostTable {
  const fields = objectOf(json, "it");
  if (fields["format"] !== COST_FORMAT) fail(`its format is not "${COST_FORMAT}"`);
  checkKeys(fields, KNOWN, "it");
  const { draft, perRowCell, packing, refined } = fields;
  const list = (name: typeof LISTS[number], least: 0 | 1) => pointsOf(fields[name], name, least);
  const buckets = arrayOf(fields["buckets"], "buckets").map((each, i) =>
    integerOf(each, `buckets[${i}]`, 1)
  );
  if (buckets.length === 0) fail("buckets is empty");
  checkRising(buckets, "buckets");
  const verify = list("verify", 1);
  // Times do not fall, so all are above 0 if the first is. Simulated time would stand still without.
  factorOf(verify[0]?.ms, "verify[0].ms");
  return {
    format: COST_FORMAT,
    adapter: textOf(fields["adapter"], "adapter"),
    model: textOf(fields["model"], "model"),
    draft: draft === undefined || draft === null ? undefined : textOf(draft, "draft"),
    buckets,
    level: list("level", 0),
    verify,
    extend: list("extend", 0),
    catchUp: list("catchUp", 0),
    prefill: list("prefill", 0),
    perCell: numberOf(fields["perCell"], "perCell"),
    ...perRowCell === undefined ? {} : { perRowCell: numberOf(perRowCell, "perRowCell") },
    host: numberOf(fields["host"], "host"),
    ...packing === undefined ? {} : { packing: numberOf(packing, "packing") },
    fitError: numberOf(fields["fitError"], "fitError"),
    ...refined === undefined ? {} : { refined: refinedOf(refined) },
  };
}

function pointsOf(json: unknown, name: string, least: 0 | 1): Point[] {
  const points = arrayOf(json, name).map((each, i): Point => {
    const where = `${name}[${i}]`;
    const fields = objectOf(each, where);
    checkKeys(fields, ["at", "ms"], where);
    return { at: numberOf(fields["at"], `${where}.at`), ms: numberOf(fields["ms"], `${where}.ms`) };
  });
  if (points.length < least) fail(`${name} is empty`);
  checkRising(points.map(({ at }) => at), `at of ${name}`);
  const falls = points.findIndex(({ ms }, i) => ms < (points[i - 1]?.ms ?? 0));
  if (falls >= 0) fail(`ms of ${name} falls at ${name}[${falls}]`);
  return points;
}

function refinedOf(json: unknown): Refined {
  const fields = objectOf(json, "refined");
  checkKeys(fields, ["all", "rounds", "catchUp", "prefill"], "refined");
  const rounds = arrayOf(fields["rounds"], "refined.rounds").map((each, i): RoundRatio => {
    const where = `refined.rounds[${i}]`;
    const round = objectOf(each, where);
    checkKeys(round, ["batch", "steps", "ratio"], where);
    return {
      batch: integerOf(round["batch"], `${where}.batch`, 1),
      steps: integerOf(round["steps"], `${where}.steps`, 0),
      ratio: factorOf(round["ratio"], `${where}.ratio`),
    };
  });
  return {
    all: factorOf(fields["all"], "refined.all"),
    rounds,
    catchUp: factorOf(fields["catchUp"], "refined.catchUp"),
    ...fields["prefill"] === undefined
      ? {}
      : { prefill: factorOf(fields["prefill"], "refined.prefill") },
  };
}

function checkKeys(fields: Fields, known: readonly string[], where: string): void {
  const unknown = Object.keys(fields).find((key) => !known.includes(key));
  if (unknown !== undefined) fail(`${where} has "${unknown}", known is ${known.join(", ")}`);
}

function checkRising(values: readonly number[], name: string): void {
  const at = values.findIndex((value, i) => i > 0 && value <= (values[i - 1] ?? 0));
  if (at >= 0) fail(`${name} must rise, but ${values[at - 1]} is followed by ${values[at]}`);
}

function objectOf(json: unknown, name: string): Fields {
  if (isObject(json)) return json;
  return fail(`${name} is no object`);
}

function arrayOf(json: unknown, name: string): readonly unknown[] {
  return Array.isArray(json) ? json : fail(`${name} is no list`);
}

function textOf(json: unknown, name: string): string {
  return typeof json === "string" ? json : fail(`${name} is no text`);
}

function numberOf(json: unknown, name: string): number {
  if (typeof json === "number" && Number.isFinite(json) && json >= 0) return json;
  return fail(`${name} must be a number of at least 0, got ${JSON.stringify(json)}`);
}

function factorOf(json: unknown, name: string): number {
  return numberOf(json, name) > 0 ? Number(json) : fail(`${name} must be above 0`);
}

function integerOf(json: unknown, name: string, least: number): number {
  if (typeof json === "number" && Number.isInteger(json) && json >= least) return json;
  return fail(`${name} must be an integer of at least ${least}, got ${JSON.stringify(json)}`);
}

function fail(why: string): never {
  throw new CostError(why);
}
