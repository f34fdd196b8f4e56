import { Environment, Interpreter } from "@huggingface/jinja";
import { field } from "../objects.ts";
import { type Ends, pythonEquals, pythonText, stripped } from "./python_values.ts";

type Statement = Parameters<Interpreter["evaluate"]>[0];
type Value = ReturnType<Interpreter["evaluate"]>;

/**
 * Adds what checkpoint templates use and the package lacks, as Jinja2 has it: objects whose keys are numbers
 * (Seed-OSS's budgets) in `dictsort` and in brackets, methods of objects that have a key of the same name, any value
 * on the left of `in`, lists and objects that are equal by what they contain (Mistral compares a message with the
 * last question), `string`, `upper`, `lower` and `trim` of any value, `map` with the name of a filter, and the
 * characters that `trim` and `strip` take away.
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
      case "BinaryExpression":
        return this.#binary(statement, environment);
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
    const isInteger = field(property, "type") === "IntegerLiteral";
    const name = field(statement, "computed") ? "" : String(field(property, "value"));
    const ends = STRIPPED.get(name);
    if (!isInteger && !METHODS.has(name) && !ends) return super.evaluate(statement, environment);
    const object = this.evaluate(field(statement, "object") as Statement, environment);
    // Jinja takes the attribute before the key, for `x.items` but not for `x["items"]`.
    const method = METHODS.has(name) ? object.builtins.get(name) : undefined;
    if (method !== undefined) return method;
    const text: unknown = object.value;
    if (ends !== undefined && typeof text === "string") {
      return new Environment().set(name, (chars?: string) => stripped(text, ends, chars));
    }
    const known = { ...statement, object: constant(object) } as Statement;
    if (!isInteger || !this.#isNumbered(object)) return super.evaluate(known, environment);
    const named = { ...known, computed: true, property: digits(property) };
    return super.evaluate(named as Statement, environment);
  }

  #filter(statement: Statement, environment: Environment): Value {
    const filter = field(statement, "filter");
    const callee = field(filter, "callee");
    const name = callee === undefined ? field(filter, "value") : `${field(callee, "value")}()`;
    if (!FILTERS.has(name)) return super.evaluate(statement, environment);
    const operand = this.evaluate(field(statement, "operand") as Statement, environment);
    const known = { ...statement, operand: constant(operand) } as Statement;
    switch (name) {
      case "dictsort":
        return this.#isNumbered(operand)
          ? this.#sorted(super.evaluate(known, environment), environment)
          : super.evaluate(known, environment);
      case "map()":
        return this.#mapped(known, operand, environment);
      case "trim": {
        const ends = { start: true, end: true };
        return new Environment().set("trimmed", stripped(pythonText(operand), ends));
      }
      default:
        // Of a text, `string` is the text itself.
        return super.evaluate(
          { ...known, operand: stringLiteral(pythonText(operand)) } as Statement,
          environment,
        );
    }
  }

  /** Gives back the numbers of sorted pairs whose keys are digits, in the order of numbers. */
  #sorted(sorted: Value, environment: Environment): Value {
    const pairs = sorted.value as { readonly value: { value: unknown }[] }[];
    for (const { value } of pairs) {
      const number = { type: "IntegerLiteral", value: Number(value[0]?.value) };
      value[0] = super.evaluate(number as unknown as Statement, environment);
    }
    pairs.sort((a, b) => Number(a.value[0]?.value) - Number(b.value[0]?.value));
    return sorted;
  }

  /** `map('upper')`: the filter of each element. */
  #mapped(statement: Statement, list: Value, environment: Environment): Value {
    const args = field(field(statement, "filter"), "args");
    const [filter] = Array.isArray(args) ? args : [];
    if (field(filter, "type") !== "StringLiteral" || !Array.isArray(list.value)) {
      return super.evaluate(statement, environment);
    }
    const value = list.value.map((each) => ({
      type: "FilterExpression",
      operand: constant(each),
      filter: { type: "Identifier", value: field(filter, "value") },
    }));
    return super.evaluate({ type: "ArrayLiteral", value } as unknown as Statement, environment);
  }

  /** `in` with a value on the left that the package refuses, and lists and objects, which it compares by reference. */
  #binary(statement: Statement, environment: Environment): Value {
    const operator = String(field(field(statement, "operator"), "value"));
    if (!COMPARISONS.has(operator)) return super.evaluate(statement, environment);
    const left = this.evaluate(field(statement, "left") as Statement, environment);
    const right = this.evaluate(field(statement, "right") as Statement, environment);
    const holds = operator.endsWith("=") ? areEqual(left, right) : isIn(left, right);
    if (holds === undefined) {
      const known = { ...statement, left: constant(left), right: constant(right) };
      return super.evaluate(known as Statement, environment);
    }
    return new Environment().set("holds", holds === ["in", "=="].includes(operator));
  }

  #isNumbered({ value }: Value): boolean {
    return typeof value === "object" && value !== null && this.#numbered.has(value);
  }
}

const COMPARISONS: ReadonlySet<string> = new Set(["in", "not in", "==", "!="]);

/** Whether values of which one is a list or an object are equal; undefined for values that the package compares. */
function areEqual(left: Value, right: Value): boolean | undefined {
  return isNested(left) || isNested(right) ? pythonEquals(left, right) : undefined;
}

/** Whether nothing, a list or an object is in a list; undefined for values that the package compares. */
function isIn(left: Value, right: Value): boolean | undefined {
  const isEmpty = left.type === "UndefinedValue" || left.type === "NullValue";
  // Keys of objects are texts.
  const elements: unknown = isEmpty && right.type === "ObjectValue" ? [] : right.value;
  if (!(isEmpty || isNested(left)) || !Array.isArray(elements)) return undefined;
  return elements.some((each) => pythonEquals(left, each));
}

function isNested({ value }: Value): boolean {
  return Array.isArray(value) || value instanceof Map;
}

/** The type of a statement that holds an evaluated value. */
const VALUE = "EvaluatedValue";

/** The package's methods of objects that a key of the same name hides. */
const METHODS: ReadonlySet<string> = new Set(["items", "keys", "values", "get"]);

/** Methods of texts, and the ends that they strip. */
const STRIPPED: ReadonlyMap<string, Ends> = new Map([
  ["strip", { start: true, end: true }],
  ["lstrip", { start: true, end: false }],
  ["rstrip", { start: false, end: true }],
]);

/** Filters that are changed here; with "()" those that have arguments. */
const FILTERS: ReadonlySet<unknown> = new Set([
  "dictsort",
  "string",
  "upper",
  "lower",
  "trim",
  "map()",
]);

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
