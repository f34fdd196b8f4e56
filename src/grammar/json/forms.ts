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
import { argumentRules, COMMON_RULES, schemaRules } from "./schema.ts";

/** Characters of a form in a message. */
const MOST_SHOWN = 80;

/**
 * A grammar of texts that are one of the forms. Arguments of a call are a JSON object, whatever else
 * their schema would allow, or as the form's syntax writes them. Each schema has its own rules, but for those that
 * follow from no schema: what `$ref` names in one is not seen from another.
 *
 * @throws GrammarError as `schemaRules`, and for a schema that no object satisfies.
 */
export function formRules(forms: readonly CallForm[]): Rules {
  const rules = new Map<string, Expression>();
  /** What forms have in common, as JSON; most have the same. */
  const commons: string[] = [];
  const parts = forms.map(({ before, schema, after, syntax }, i) => {
    const arguments_ = productive(
      syntax ? argumentRules(schema, syntax) : schemaRules(schema, { objects: true }),
    );
    if (arguments_ === undefined) {
      const begin = JSON.stringify(before.slice(0, MOST_SHOWN));
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
