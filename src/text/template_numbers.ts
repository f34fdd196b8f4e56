import { Environment, type Interpreter } from "@huggingface/jinja";
import { LITERAL_JSON, numberLiteral } from "./number_literals.ts";

type Value = ReturnType<Interpreter["evaluate"]>;

/** A number that the interpreter calculates with, and writes as its literal. */
class LiteralNumber extends Number {
  readonly #literal: string;

  constructor(literal: string) {
    super(literal);
    this.#literal = literal;
  }

  override toString(): string {
    return this.#literal;
  }

  /** The interpreter's way to write a whole float. */
  override toFixed(): string {
    return this.#literal;
  }

  toJSON(): unknown {
    return LITERAL_JSON.rawJSON(this.#literal);
  }
}

/** Makes marked numbers in the calls of messages numbers again; what people write is left as it is. */
export function restoreNumbers(messages: Value): void {
  for (const { value } of messages.value as readonly { readonly value: unknown }[]) {
    const calls = (value as ReadonlyMap<string, Value>).get("tool_calls");
    if (calls !== undefined) withLiterals(calls);
  }
}

/** The value with the numbers that `parseWithLiterals` marked as numbers again. */
function withLiterals(value: Value): Value {
  const inner: unknown = value.value;
  if (Array.isArray(inner)) {
    inner.forEach((each, at) => inner[at] = withLiterals(each));
  } else if (inner instanceof Map) {
    for (const [key, each] of inner) inner.set(key, withLiterals(each));
  }
  const literal = numberLiteral(inner);
  if (literal === undefined) return value;
  const number = new LiteralNumber(literal);
  const isFloat = /[.eE]/.test(literal);
  const values = new Environment();
  const isTrue = values.set("isTrue", Number(literal) !== 0);
  // Any number with a fraction gives a value of the interpreter's type for floats, any other one for integers. An
  // object is true, whatever its number is.
  return Object.assign(values.set("number", isFloat ? 0.5 : 1), {
    value: number,
    __bool__: () => isTrue,
  }) as Value;
}
