import { type CallForm, GrammarError } from "../rules/grammar.ts";
import {
  choice,
  type Expression,
  productive,
  rule,
  type Rules,
  sequence,
  text,
} from "../rules/rules.ts";
import { Budget } from "./budget.ts";
import { argumentRules, COMMON_RULES, schemaRules } from "./schema.ts";

/** The most characters of a form that a message shows. */
const MAX_SHOWN = 80;

/**
 * The grammar of texts that are one of the forms. The arguments of a call are a JSON object, even if their schema
 * allows other values, or are written in the form's syntax. Each schema has its own rules, so a `$ref` of one schema
 * cannot see another's; only the rules that do not depend on a schema are shared.
 *
 * @throws GrammarError as `schemaRules`, and for a schema that no object satisfies.
 */
export function formRules(forms: readonly CallForm[]): Rules {
  const rules = new Map<string, Expression>();
  /** The distinct sets of common rules, as JSON; most forms have the same set. */
  const commons: string[] = [];
  const budget = new Budget();
  const parts = forms.map(({ before, schema, after, syntax }, i) => {
    const arguments_ = productive(
      syntax
        ? argumentRules(schema, syntax, budget)
        : schemaRules(schema, { objects: true, budget }),
    );
    if (arguments_ === undefined) {
      const begin = JSON.stringify(before.slice(0, MAX_SHOWN));
      throw new GrammarError(
        `JSON schema of the arguments of the call that begins with ${begin}: no object satisfies it`,
      );
    }
    const common = JSON.stringify([...arguments_].filter(([name]) => COMMON_RULES.includes(name)));
    if (!commons.includes(common)) commons.push(common);
    const of = commons.indexOf(common);
    const own = (name: string) =>
      COMMON_RULES.includes(name) ? `common_${of}_${name}` : `form_${i}_${name}`;
    for (const [name, body] of arguments_) rules.set(own(name), renamed(body, own));
    return sequence(text(before), rule(own("root")), text(after));
  });
  return new Map([["root", choice(...parts)], ...rules]);
}

/** The expression with other names of rules. */
function renamed(expression: Expression, own: (name: string) => string): Expression {
  switch (expression.kind) {
    case "rule":
      return rule(own(expression.name));
    case "sequence":
    case "choice":
      return { ...expression, parts: expression.parts.map((part) => renamed(part, own)) };
    case "repeat":
      return { ...expression, part: renamed(expression.part, own) };
    case "counted string":
      return { ...expression, of: own(expression.of) };
    default:
      return expression;
  }
}
