/** A program of npm's; on Windows they are scripts, which only a shell starts. */
export function npmProgram(name: "npm" | "npx"): readonly [string, ...string[]] {
  return Deno.build.os === "windows" ? ["cmd", "/d", "/c", name] : [name];
}
