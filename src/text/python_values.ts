/** A template's value, as the interpreter has it: a list's is an array, an object's is a map. */
interface TemplateValue {
  readonly type: string;
  readonly value: unknown;
  toString(): string;
}

/** Python's `str(value)`, which is what Jinja's filters of texts make of other values. */
export function pythonText(value: TemplateValue): string {
  if (value.type === "UndefinedValue") return "";
  return typeof value.value === "string" ? value.value : literalOf(value);
}

/** Python's `repr(value)`. */
function literalOf(of: TemplateValue): string {
  const { type, value } = of;
  if (type === "UndefinedValue") return "Undefined";
  if (type === "NullValue") return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return quoted(value);
  if (value instanceof Map) {
    const entries = [...value as ReadonlyMap<string, TemplateValue>];
    return `{${entries.map(([key, each]) => `${quoted(key)}: ${literalOf(each)}`).join(", ")}}`;
  }
  if (!Array.isArray(value)) return of.toString();
  const elements = (value as readonly TemplateValue[]).map(literalOf);
  return type === "TupleValue" ? `(${elements.join(", ")})` : `[${elements.join(", ")}]`;
}

/** What Python escapes. Noncharacters stay, because user_text.ts marks texts with them. */
const ESCAPED = /[\\\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const SHORT: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(ESCAPED, (character) => SHORT[character] ?? numbered(character));
  return `${quote}${quote === "'" ? escaped.replaceAll("'", "\\'") : escaped}${quote}`;
}

function numbered(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

/** Python's `a == b`. */
export function pythonEquals(a: TemplateValue, b: TemplateValue): boolean {
  const [left, right] = [a.value, b.value];
  if (a.type !== b.type) return false;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((each, i) => pythonEquals(each, right[i]));
  }
  if (left instanceof Map && right instanceof Map) {
    return left.size === right.size &&
      [...left].every(([key, each]) => right.has(key) && pythonEquals(each, right.get(key)));
  }
  return left === right;
}

/** Ends of a text. */
export interface Ends {
  readonly start: boolean;
  readonly end: boolean;
}

/** Python's white space: that of JavaScript and five control characters more, without the byte order mark. */
function isSpace(character: string): boolean {
  return "\x1c\x1d\x1e\x1f\x85".includes(character) ||
    (character !== "\ufeff" && character.trim() === "");
}

/** Python's `strip`, `lstrip` and `rstrip`. @param chars default: white space. */
export function stripped(text: string, { start, end }: Ends, chars?: string | null): string {
  const set = chars === undefined || chars === null ? undefined : new Set(chars);
  const isStripped = (character: string) => set?.has(character) ?? isSpace(character);
  let [from, to] = [0, text.length];
  while (start && from < to) {
    const character = String.fromCodePoint(text.codePointAt(from) ?? 0);
    if (!isStripped(character)) break;
    from += character.length;
  }
  while (end && from < to) {
    const character = [...text.slice(Math.max(from, to - 2), to)].at(-1) ?? "";
    if (!isStripped(character)) break;
    to -= character.length;
  }
  return text.slice(from, to);
}
