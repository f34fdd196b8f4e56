import { type Environment, Interpreter } from "@huggingface/jinja";
import { field } from "../objects.ts";

type Statement = Parameters<Interpreter["evaluate"]>[0];
type Value = ReturnType<Interpreter["evaluate"]>;

/**
 * Adds what checkpoint templates use and the package lacks: objects whose keys are numbers (Seed-OSS's budgets)
 * in `dictsort` and in brackets, and `string` of None and of booleans as Python writes them.
 */
export class FullerInterpreter extends Interpreter {
  /** The maps whose keys are the digits of numbers. */
  readonly #numbered = new WeakSet<object>();

  override evaluate(statement: Statement, environment: Environment): Value {
    switch (field(statement, "type")) {
      case VALUE:
        return field(statement, "value") as Value;
      case "ObjectLiteral":
        return this.#object(statement, environment);
      case "MemberExpression":
        return this.#member(statement, environment);
      case "FilterExpression":
        return this.#filter(statement, environment);
      default:
        return super.evaluate(statement, environment);
    }
  }

  #object(statement: Statement, environment: Environment): Value {
    const keys = [...(field(statement, "value") as Map<unknown, unknown>).entries()];
    const numbers = keys.length > 0 &&
      keys.every(([key]) => field(key, "type") === "IntegerLiteral");
    if (!numbers) return super.evaluate(statement, environment);
    const value = new Map(keys.map(([key, value]) => [digits(key), value]));
    const object = super.evaluate({ type: "ObjectLiteral", value } as Statement, environment);
    this.#numbered.add(object.value as object);
    return object;
  }

  #member(statement: Statement, environment: Environment): Value {
    const property = field(statement, "property");
    if (field(property, "type") !== "IntegerLiteral") return super.evaluate(statement, environment);
    const object = this.evaluate(field(statement, "object") as Statement, environment);
    const known = { ...statement, object: constant(object) } as Statement;
    if (!this.#isNumbered(object)) return super.evaluate(known, environment);
    const named = { ...known, computed: true, property: digits(property) };
    return super.evaluate(named as Statement, environment);
  }

  #filter(statement: Statement, environment: Environment): Value {
    const filter = field(statement, "filter");
    const name = field(filter, "type") === "Identifier" ? field(filter, "value") : undefined;
    if (name !== "string" && name !== "dictsort") return super.evaluate(statement, environment);
    const operand = this.evaluate(field(statement, "operand") as Statement, environment);
    if (name === "string") {
      const text = pythonText(operand);
      if (text !== undefined) return super.evaluate(stringLiteral(text), environment);
    }
    const sorted = super.evaluate(
      { ...statement, operand: constant(operand) } as Statement,
      environment,
    );
    if (name === "dictsort" && this.#isNumbered(operand)) {
      const pairs = sorted.value as { readonly value: { value: unknown }[] }[];
      for (const { value } of pairs) {
        const number = { type: "IntegerLiteral", value: Number(value[0]?.value) };
        value[0] = super.evaluate(number as unknown as Statement, environment);
      }
      pairs.sort((a, b) => Number(a.value[0]?.value) - Number(b.value[0]?.value));
    }
    return sorted;
  }

  #isNumbered({ value }: Value): boolean {
    return typeof value === "object" && value !== null && this.#numbered.has(value);
  }
}

/** The type of a statement that holds an evaluated value. */
const VALUE = "EvaluatedValue";

/** None and booleans as Python writes them; undefined for others. */
function pythonText({ type, value }: Value): string | undefined {
  if (type === "NullValue") return "None";
  if (type === "BooleanValue") return value ? "True" : "False";
  return undefined;
}

function constant(value: Value): Statement {
  return { type: VALUE, value } as unknown as Statement;
}

function stringLiteral(value: string): Statement {
  return { type: "StringLiteral", value } as unknown as Statement;
}

/** An integer literal's digits as a text's literal. */
function digits(literal: unknown): Statement {
  return stringLiteral(String(field(literal, "value")));
}
