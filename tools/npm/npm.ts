/** A program that comes with npm. On Windows these are scripts, which only a shell can start. */
export function npmProgram(name: "npm" | "npx"): readonly [string, ...string[]] {
  return Deno.build.os === "windows" ? ["cmd", "/d", "/c", name] : [name];
}
