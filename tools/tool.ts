import { UsageError } from "../src/errors.ts";

/**
 * Runs a tool and ends the process with its exit code: 2 for unusable arguments, 1 for other failures.
 * Errors whose message begins with "Cannot" are meant for the user; others are printed with their stack.
 */
export async function runTool(tool: (args: readonly string[]) => Promise<number>): Promise<never> {
  try {
    Deno.exit(await tool(Deno.args));
  } catch (error) {
    const { message = String(error), stack = message, code } = error as Partial<
      Error & { code: string }
    >;
    // The error that parseArgs of node:util throws.
    const mistake = error instanceof UsageError || code?.startsWith("ERR_PARSE_ARGS") === true;
    await say(Deno.stderr, mistake || message.startsWith("Cannot ") ? message : stack);
    Deno.exit(mistake ? 2 : 1);
  }
}

/** Writes a line. */
export async function say(output: typeof Deno.stdout, line: string): Promise<void> {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let at = 0; at < bytes.length;) at += await output.write(bytes.subarray(at));
}

/** The one operand of a tool. @throws UsageError */
export function operandIn(args: readonly string[], tool: string, name: string): string {
  const [operand, ...more] = args;
  if (operand !== undefined && operand !== "" && more.length === 0) return operand;
  throw new UsageError(
    `Cannot run "${[tool, ...args].join(" ")}": ${name} is missing or not alone`,
  );
}
