type Counts = Readonly<Record<string, number>>;

/**
 * Unrolls marked blocks of WGSL, because naga emits loops that drivers do not unroll
 * (gfx-rs/wgpu#7698). A block between a line `//for m in NAME` and a line `//end` is repeated
 * `counts[NAME]` times with `$m` replaced by 0, 1, 2, ...; blocks nest. `$NAME` outside of its
 * block is replaced by the count itself, `$(m * NAME + 1)` by the value of the expression.
 *
 * @throws Error on an unknown count or an unbalanced block.
 */
export function expand(code: string, counts: Counts): string {
  const [text, rest] = block(code.split("\n"), counts, false);
  if (rest.length > 0) throw new Error("//end without //for");
  const counted = Object.entries(counts).reduce(
    (out, [name, n]) => out.replaceAll(new RegExp(`\\$${name}(?![A-Z_])`, "g"), `${n}`),
    text,
  );
  return counted.replaceAll(EXPRESSION, (whole, sum) => `${valueOf(sum, counts, whole)}`);
}

/** A sum of products of numbers, variables and counts. */
const EXPRESSION = /\$\(([^)]*)\)/g;

function valueOf(sum: string, counts: Counts, whole: string): number {
  const factor = (name: string) => /^\d+$/.test(name) ? Number(name) : counts[name] ?? NaN;
  const product = (text: string) =>
    text.split("*").map((name) => factor(name.trim())).reduce((a, b) => a * b);
  const value = sum.split("+").map(product).reduce((a, b) => a + b);
  if (Number.isNaN(value)) throw new Error(`${whole}: no such count`);
  return value;
}

function block(
  lines: readonly string[],
  counts: Counts,
  nested: boolean,
): [text: string, rest: readonly string[]] {
  const out: string[] = [];
  let rest = lines;
  while (rest.length > 0) {
    const line = rest[0] ?? "";
    rest = rest.slice(1);
    const open = line.match(/^\s*\/\/for (\w+) in (\w+)\s*$/);
    if (open) {
      const [, variable = "", name = ""] = open;
      const count = counts[name];
      if (count === undefined) throw new Error(`//for ${variable} in ${name}: no such count`);
      const [body, after] = block(rest, counts, true);
      for (let i = 0; i < count; i++) out.push(assigned(body, variable, i));
      rest = after;
    } else if (/^\s*\/\/end\s*$/.test(line)) {
      if (nested) return [out.join("\n"), rest];
      throw new Error("//end without //for");
    } else out.push(line);
  }
  if (nested) throw new Error("//for without //end");
  return [out.join("\n"), rest];
}

/** `body` with a variable's value in the place of its name. */
function assigned(body: string, variable: string, value: number): string {
  const text = body.replaceAll(`$${variable}`, `${value}`);
  if (!text.includes("$(")) return text;
  const name = new RegExp(`\\b${variable}\\b`, "g");
  return text.replaceAll(EXPRESSION, (whole) => whole.replaceAll(name, `${value}`));
}
