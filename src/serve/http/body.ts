import { Buffer } from "node:buffer";
import type { z } from "zod";
import { parseWithLiteralsAt } from "../../text/number_literals.ts";
import { ApiError, invalid, tooManyOf } from "./errors.ts";
import { reasonOf } from "./reasons.ts";

/** Largest body, bytes. */
const MAX_BYTES = 8 * 2 ** 20;

/** Deeper JSON is refused: recursive code that walks through it would overflow the stack. */
const MAX_DEPTH = 100;

/**
 * Most objects, lists and fields. The check of a body describes each that does not fit, which takes up to 25 µs, and
 * no stream goes on meanwhile. A long conversation with tools has less than one for each ten tokens.
 */
const MAX_PARTS = 100_000;

/** Most values, of which the token ids of a prompt are the most. */
const MAX_VALUES = 2 ** 18;

/**
 * The request's body as JSON.
 *
 * @param literals where the literals of numbers are kept, see `parseWithLiteralsAt`; default nowhere
 * @throws ApiError for a body that is encoded (415), too large or of too many parts (413) or breaks off, for what is no
 * UTF-8 or no JSON, and for JSON that is nested too deep.
 */
export async function readJson(request: Request, literals?: readonly string[]): Promise<unknown> {
  const encoding = request.headers.get("content-encoding")?.trim() || "identity";
  if (encoding.toLowerCase() !== "identity") {
    const name = JSON.stringify(encoding.slice(0, 50));
    throw new ApiError(
      415,
      `the body's Content-Encoding ${name} is not read: allowed is identity`,
      {
        headers: { "accept-encoding": "identity" },
      },
    );
  }
  const text = utf8(await readBytes(request));
  const { depth, parts, values } = structureOf(text);
  if (depth > MAX_DEPTH) {
    throw invalid(`the body's JSON is nested more than ${MAX_DEPTH} levels deep`);
  }
  if (parts > MAX_PARTS) throw tooManyOf("objects, lists and fields", parts, MAX_PARTS);
  if (values > MAX_VALUES) throw tooManyOf("values", values, MAX_VALUES);
  try {
    return literals ? parseWithLiteralsAt(text, literals) : JSON.parse(text);
  } catch {
    throw invalid("the body is not JSON");
  }
}

/** @throws ApiError naming the first field that does not fit the schema. */
export function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error, success } = schema.safeParse(value, { reportInput: true, error: reasonOf });
  if (success) return data;
  throw fieldError(error.issues);
}

function fieldError(issues: readonly z.core.$ZodIssue[]): ApiError {
  const [issue] = issues;
  if (issue === undefined) return invalid("the body cannot be used");
  if (issue.code === "invalid_union") {
    const inner = issue.errors.toSorted((a, b) => depthOfIssue(b) - depthOfIssue(a))[0] ?? [];
    if (inner.some(({ path }) => path.length > 0)) {
      return fieldError(inner.map((each) => ({ ...each, path: [...issue.path, ...each.path] })));
    }
  }
  const path = pathText(issue.path);
  if (issue.code === "unrecognized_keys") {
    const name = pathText([...issue.path, issue.keys[0] ?? ""]);
    return invalid(`Cannot use "${name}": it is not known here`, name);
  }
  const absent = "input" in issue && issue.input === undefined && path !== "";
  const message = absent
    ? `Cannot do without "${path}": ${issue.message}`
    : `Cannot use "${path || "the body"}": ${issue.message}`;
  return invalid(message, path || null);
}

function depthOfIssue(issues: readonly z.core.$ZodIssue[]): number {
  return issues.reduce((most, { path }) => Math.max(most, path.length), 0);
}

/** `messages[0].content`. */
function pathText(path: readonly PropertyKey[]): string {
  return path.map((part, i) => (
    typeof part === "number" ? `[${part}]` : `${i > 0 ? "." : ""}${String(part).slice(0, 100)}`
  )).join("");
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > MAX_BYTES) throw tooLarge();
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return Buffer.concat(chunks, size);
      chunks.push(value);
      size += value.length;
      if (size > MAX_BYTES) throw tooLarge();
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    if (error instanceof ApiError) throw error;
    throw invalid("the body did not arrive whole");
  }
}

function tooLarge(): ApiError {
  return new ApiError(413, `the body has more than ${MAX_BYTES} bytes`);
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid("the body is not UTF-8");
  }
}

/** What a JSON text consists of, counted by its signs outside of strings. */
interface Structure {
  /** The deepest nesting of brackets. */
  readonly depth: number;
  /** Objects, lists and fields. */
  readonly parts: number;
  /** One more than the commas: not fewer than any list has. */
  readonly values: number;
}

export function structureOf(json: string): Structure {
  let [depth, most, parts, values, inString] = [0, 0, 0, 1, false];
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (inString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === COMMA) values++;
    else if (code === COLON) parts++;
    else if (code === BRACE || code === BRACKET) {
      most = Math.max(most, ++depth);
      parts++;
    } else if (code === BRACE + 2 || code === BRACKET + 2) depth--;
  }
  return { depth: most, parts, values };
}

const [QUOTE, BACKSLASH, BRACE, BRACKET, COMMA, COLON] = [0x22, 0x5c, 0x7b, 0x5b, 0x2c, 0x3a];
