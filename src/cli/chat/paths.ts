/** `~` and `~/...` are the user's own folder. */
export function expandHome(path: string): string {
  const home = Deno.env.get("HOME") ?? Deno.env.get("USERPROFILE");
  return home === undefined ? path : path.replace(/^~(?=$|[/\\])/, () => home);
}

/** A path is the rest of a line, so spaces need no quotes; a pair around the whole path is removed. */
export function withoutQuotes(path: string): string {
  return /^(["'])([^]*)\1$/.exec(path.trim())?.[2] ?? path.trim();
}
