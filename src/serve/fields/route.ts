import { z } from "zod";
import { checked, readJson } from "../http/body.ts";
import { ApiError, invalid } from "../http/errors.ts";
import type { Call, Route } from "../service/route.ts";
import type { Service } from "../service/service.ts";
import { unknownFields, withoutNulls } from "./nulls.ts";
import { type Body, takeFields, type TakingTable } from "./taking.ts";

/** A request of an API whose clients send more than the server knows. */
export interface ApiCall extends Call {
  /**
   * A field or tool of the request is ignored: it is named in the header
   * `eyrie-ignored`. @throws ApiError (400) where the server is strict.
   */
  readonly ignore: (name: string) => void;
}

/** Callbacks with which the preparation of a body reports and takes fields. */
export interface Take extends Pick<ApiCall, "ignore"> {
  /** Takes the fields inside of `name` by a table of their own; returns the remaining fields. */
  readonly fields: (name: string, value: Body, table: TakingTable) => Body;
}

type About = Omit<Route, "method" | "body" | "handle"> & {
  readonly fields: TakingTable;
  /** Where the body has arguments of earlier calls, whose numbers keep their literals; see `parseWithLiteralsAt`. */
  readonly calls?: readonly string[];
  /** Removes tools, items or the like from the body before the schema checks it. */
  readonly prepare?: (body: Body, take: Take) => Body;
  /** The names that this API has for fields of a chat, or for paths of them, where an error names one. */
  readonly names?: Readonly<Record<string, string>>;
};

/** Most names in the header. */
const MAX_NAMES = 30;

/**
 * A route that takes fields by one rule. A value that would change the answer and cannot be honoured is
 * refused. Hints and values that change nothing are accepted and named once in the log. Unknown fields and
 * tools that cannot run here are named in the header `eyrie-ignored`, and refused where the server is strict.
 *
 * @param schema of the fields that the route uses; it drops others.
 */
export function apiPost<T>(
  { fields: table, calls, prepare, names = {}, ...about }: About,
  schema: z.ZodType<T>,
  handle: (body: T, call: ApiCall) => Promise<Response> | Response,
): Route {
  return {
    method: "post",
    ...about,
    body: schema,
    handle: async (call) => {
      const { service, request } = call;
      const ignored = new Set<string>();
      const ignore = (name: string) => {
        if (service.options.strict) {
          throw invalid(
            `Cannot use "${name}": it is unknown or has no effect here (--strict)`,
            name,
          );
        }
        ignored.add(name);
      };
      const sent = withoutNulls(await readJson(request, calls));
      const object = checked(z.record(z.string(), z.unknown(), "it is not a JSON object"), sent);
      const taken = takeFields(object, table, checkNamed);
      let sentNames = taken.names;
      const hints = [...taken.hints];
      const fields: Take["fields"] = (name, value, table) => {
        const inner = takeInner(name, value, table);
        hints.push(...inner.hints.map((each) => `${name}.${each}`));
        sentNames = { ...sentNames, ...inner.names };
        return inner.body;
      };
      try {
        for (const name of taken.dropped) ignore(name);
        const prepared = prepare?.(taken.body, { ignore, fields }) ?? taken.body;
        const body = checked(schema, prepared);
        for (const name of unknownFields(prepared, body)) ignore(shown(name));
        // From here on errors name the fields of a chat.
        sentNames = { ...names, ...sentNames };
        const response = await handle(body, { ...call, ignore });
        logFields(service, { hints, ignored: [...ignored] });
        setIgnored(response, [...ignored]);
        return response;
      } catch (error) {
        throw error instanceof ApiError ? renamed(error, sentNames) : error;
      }
    },
  };
}

/** @throws ApiError (400) with the field's whole path. */
function takeInner(path: string, value: Body, table: TakingTable): ReturnType<typeof takeFields> {
  try {
    return takeFields(value, table, checkNamed);
  } catch (error) {
    const name = error instanceof ApiError ? error.param : null;
    if (name === null) throw error;
    const message = (error as ApiError).message.replace(`"${name}"`, `"${path}.${name}"`);
    throw invalid(message, `${path}.${name}`);
  }
}

function checkNamed(schema: z.ZodType, value: unknown, name: string): unknown {
  const whole = checked(z.object({ [name]: schema }), { [name]: value });
  return whole[name];
}

/**
 * What stands before a field's name in an error's text. Other quoted names are those of tools, models and rules, which
 * the client gave.
 */
const BEFORE_NAME = /(?<=^Cannot (?:use|do without|go on from) "(?:[^"]*" with ")?)\w+/g;

/** The error with the fields' names as the client knows them. */
function renamed(error: ApiError, names: Readonly<Record<string, string>>): ApiError {
  const { status, type, code, fields, headers, param } = error;
  const named = (name: string) => Object.hasOwn(names, name) ? names[name] as string : name;
  const message = error.message.replaceAll(BEFORE_NAME, named);
  return new ApiError(status, message, {
    type,
    code,
    fields,
    headers,
    param: param === null ? null : renamedPath(param, names),
  });
}

/** The path with the name for it, in which `[]` stands for each index; otherwise with the name of its first field. */
function renamedPath(path: string, names: Readonly<Record<string, string>>): string {
  const own = (name: string) => Object.hasOwn(names, name) ? names[name] : undefined;
  const indices = path.match(/\[\d+\]/g) ?? [];
  const whole = own(path.replaceAll(/\[\d+\]/g, "[]"));
  if (whole !== undefined) return whole.replaceAll("[]", () => indices.shift() ?? "[]");
  const [, head = "", rest = ""] = /^([^.[]*)(.*)$/s.exec(path) ?? [];
  return `${own(head) ?? head}${rest}`;
}

/** A field's name, made safe for a log line and a header. */
function shown(name: string): string {
  return name.replaceAll(/[^\w.[\]-]/g, "?").slice(0, 100);
}

function setIgnored(response: Response, names: readonly string[]): void {
  if (names.length === 0) return;
  const listed = names.slice(0, MAX_NAMES).map(shown);
  const more = names.length > listed.length ? [`${names.length - listed.length} more`] : [];
  response.headers.set("eyrie-ignored", [...listed, ...more].join(", "));
}

/** Each field once, over the server's life. */
function logFields(
  { log }: Service,
  { hints, ignored }: { readonly hints: readonly string[]; readonly ignored: readonly string[] },
): void {
  for (const name of hints.map(shown)) {
    log.once(`field ${name}`, `the field "${name}" of a request has no effect here`);
  }
  for (const name of ignored.map(shown)) {
    log.once(`ignored ${name}`, `ignored "${name}" of a request: it cannot be used here`);
  }
}
