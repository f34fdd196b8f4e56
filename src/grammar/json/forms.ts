import { choice, type Expression, rule, type Rules, sequence, text } from "../rules/rules.ts";
import type { CallForm } from "../rules/grammar.ts";
import { schemaRules } from "./schema.ts";

/**
 * A grammar of texts that are one of the forms. Each schema has its own rules: what `$ref` names in
 * one is not seen from another.
 *
 * @throws GrammarError as `schemaRules`.
 */
export function formRules(forms: readonly CallForm[]): Rules {
  const rules = new Map<string, Expression>();
  const parts = forms.map(({ before, schema, after }, i) => {
    for (const [name, body] of schemaRules(schema)) rules.set(own(name, i), renamed(body, i));
    return sequence(text(before), rule(own("root", i)), text(after));
  });
  return new Map([["root", choice(...parts)], ...rules]);
}

function own(name: string, form: number): string {
  return `form_${form}_${name}`;
}

/** The expression with the rules of its form. */
function renamed(expression: Expression, form: number): Expression {
  switch (expression.kind) {
    case "rule":
      return rule(own(expression.name, form));
    case "sequence":
    case "choice":
      return { ...expression, parts: expression.parts.map((part) => renamed(part, form)) };
    case "repeat":
      return { ...expression, part: renamed(expression.part, form) };
    default:
      return expression;
  }
}
