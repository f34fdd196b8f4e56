import { UsageError } from "../src/errors.ts";

/** A folder with another version of this repository. */
export interface Checkout extends AsyncDisposable {
  readonly folder: string;
}

/**
 * The folder of that name. If there is none, the name is a git ref, which is checked out into a
 * temporary worktree; the worktree is removed at the end.
 *
 * @param root the repository.
 * @throws UsageError if the name is neither a folder nor a git ref.
 */
export async function openCheckout(called: string, root: string): Promise<Checkout> {
  const isFolder = await Deno.stat(called).then(({ isDirectory }) => isDirectory, () => false);
  if (isFolder) {
    return { folder: await Deno.realPath(called), [Symbol.asyncDispose]: () => Promise.resolve() };
  }
  const folder = await Deno.makeTempDir({ prefix: "eyrie-against-" });
  const remove = async () => {
    await git(root, "worktree", "remove", "--force", folder);
    await Deno.remove(folder, { recursive: true }).catch(() => {}); // git removed it already
  };
  // "--" keeps a ref that begins with a dash from being an option.
  const { code, said } = await git(root, "worktree", "add", "--detach", "--", folder, called);
  if (code === 0) return { folder, [Symbol.asyncDispose]: remove };
  await remove();
  throw new UsageError(`Cannot check out "${called}": no folder, and git says ${said}`);
}

/** `said` is the first line of git's complaint. */
async function git(root: string, ...args: string[]): Promise<{ code: number; said: string }> {
  const { code, stderr } = await new Deno.Command("git", { args: ["-C", root, ...args] }).output();
  const lines = new TextDecoder().decode(stderr).trim().split("\n");
  return { code, said: lines.at(-1) ?? "" };
}
