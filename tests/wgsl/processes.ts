/**
 * The two halves of the WGSL check, as arguments of `deno` in the checkout's root. They are processes
 * apart, because Deno's WebGPU and Dawn's crash together.
 */

/** The variable that tells tests where to keep what they compile; several processes may share it. */
export const RECORD_FOLDER = "EYRIE_WGSL";

/** For `deno test` and `deno run`. */
export const RECORD: readonly string[] = ["--preload", "tests/wgsl/record.ts"];

/** The folder comes next; exit code 0 when all in it is right. */
export const CHECK: readonly string[] = [
  ...["run", "-A", "--config", "tests/wgsl/dawn.jsonc"],
  "tests/wgsl/check.ts",
];
