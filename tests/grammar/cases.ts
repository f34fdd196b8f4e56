/** Random grammars: checks that each output is valid, and that it is the same with every way to draft. */
import assert from "node:assert/strict";
import Ajv from "npm:ajv@8.20.0/dist/2020.js";
import addFormats from "npm:ajv-formats@3.0.1";
import type { CodePoints } from "../../src/grammar/rules/code_points.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import type { Grammars } from "../../src/grammar/grammars.ts";
import { ebnf, productive } from "../../src/grammar/rules/rules.ts";
import type { TokenBytes } from "../../src/text/token_bytes.ts";
import { drawFrom, randomRegex, randomRules, randomSchema } from "./random.ts";
import { recognizes } from "./recognize.ts";
import { simulate, type Simulated } from "./simulated.ts";

// The types describe CommonJS modules, but at run time the class and the function themselves are imported.
const Validator = Ajv as unknown as typeof Ajv.default;
const withFormats = addFormats as unknown as typeof addFormats.default;

export type CaseKind = "schema" | "regex" | "ebnf";

interface Case {
  readonly grammar: Grammar;
  isValid(text: string): boolean;
}

export function isValidJson(schema: unknown, text: string): boolean {
  const ajv = new Validator({ strict: false, allErrors: true });
  withFormats(ajv);
  return ajv.validate(schema as object, JSON.parse(text));
}

function caseOf(kind: CaseKind, seed: number): Case {
  const draw = drawFrom(seed);
  if (kind === "schema") {
    const schema = randomSchema(draw);
    return {
      grammar: { kind: "json schema", schema },
      isValid: (text) => isValidJson(schema, text),
    };
  }
  if (kind === "regex") {
    const pattern = randomRegex(draw);
    const expression = new RegExp(`^(?:${pattern})$`, "u");
    return { grammar: { kind: "regex", pattern }, isValid: (text) => expression.test(text) };
  }
  const rules = randomRules(draw);
  assert.ok(productive(rules));
  return {
    grammar: { kind: "ebnf", text: ebnf(rules, classOf) },
    isValid: (text) => recognizes(rules, text),
  };
}

/** A character class in the syntax in which people write it. */
function classOf(set: CodePoints): string {
  const one = (point: number) => `\\U${point.toString(16).padStart(8, "0")}`;
  return `[${set.map(([from, to]) => `${one(from)}-${one(to)}`).join("")}]`;
}

/** The outputs of a case. */
export interface CaseResult {
  readonly plain: Simulated;
  readonly forced: Simulated;
}

/** @throws AssertionError that names the case. */
export async function checkCase(
  { grammars, tokens }: { readonly grammars: Pick<Grammars, "open">; readonly tokens: TokenBytes },
  kind: CaseKind,
  seed: number,
): Promise<CaseResult> {
  const { grammar, isValid } = caseOf(kind, seed);
  const run = (drafting: Parameters<typeof simulate>[3]["drafting"]) =>
    simulate(grammars, grammar, tokens, { seed, drafting });
  const plain = await run("none");
  const shown = `${kind} ${seed} ${JSON.stringify(grammar)}\n${plain.text}`;
  if (plain.finished === "stop") assert.ok(isValid(plain.text), shown);
  const forced = await run("forced");
  for (const other of [forced, await run("chains"), await run("trees")]) {
    assert.deepEqual([other.ids, other.finished], [plain.ids, plain.finished], shown);
  }
  return { plain, forced };
}
