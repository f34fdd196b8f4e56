import { UsageError } from "../../errors.ts";
import { REWRITES } from "./rewrites.ts";

/** The variable that names rewrites which are not applied. */
export const WITHOUT = "EYRIE_WITHOUT";

/**
 * Rewrites that are turned off, by name; "all" turns off all of them.
 *
 * @param value the variable's: names with commas between them.
 * @throws UsageError on a name that no rewrite has.
 */
export function rewritesWithout(
  value: string | undefined = Deno.env.get(WITHOUT),
): ReadonlySet<string> {
  const names = (value ?? "").split(",").map((name) => name.trim()).filter((name) => name !== "");
  const known = ["all", ...REWRITES.map(({ name }) => name)];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return new Set(names);
  throw new UsageError(
    `Cannot use "${WITHOUT}=${value}": there is no rewrite "${unknown}" (there are ${
      known.join(", ")
    })`,
  );
}
