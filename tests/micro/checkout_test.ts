import assert from "node:assert/strict";
import { openCheckout } from "../../lab/checkout.ts";
import { openServer } from "../../lab/server.ts";
import { UsageError } from "../../src/errors.ts";

async function git(root: string, ...args: string[]): Promise<string> {
  const { code, stdout } = await new Deno.Command("git", { args: ["-C", root, ...args] }).output();
  assert.equal(code, 0, args.join(" "));
  return new TextDecoder().decode(stdout);
}

/** bench:micro alone needs git; the tests do not ask for it. */
const ignore = await new Deno.Command("git", { args: ["--version"] }).output()
  .then(({ success }) => !success, () => true);

/** A repository whose file `version` says 1 at the tag v1, and 2 now. */
async function inRepository(test: (root: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const commit = async (version: string) => {
    await Deno.writeTextFile(`${root}/version`, version);
    await git(root, "add", "version");
    const who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    await git(root, ...who, "commit", "-qm", version);
  };
  try {
    await git(root, "init", "-q");
    await commit("1");
    await git(root, "tag", "v1");
    await commit("2");
    await test(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

const worktrees = async (root: string) =>
  (await git(root, "worktree", "list")).trim().split("\n").length;

Deno.test(
  "a git ref becomes a worktree that is gone afterwards, on an error too",
  { ignore },
  async () => {
    await inRepository(async (root) => {
      let folder = "";
      const failing = async () => {
        await using checkout = await openCheckout("v1", root);
        folder = checkout.folder;
        assert.equal(await Deno.readTextFile(`${folder}/version`), "1");
        assert.equal(await worktrees(root), 2);
        throw new Error("stopped");
      };
      await assert.rejects(failing, /stopped/);
      assert.equal(await worktrees(root), 1);
      await assert.rejects(() => Deno.stat(folder), Deno.errors.NotFound);
    });
  },
);

Deno.test("a folder is taken as it is and left as it was", { ignore }, async () => {
  await inRepository(async (root) => {
    {
      await using checkout = await openCheckout(root, "/");
      assert.equal(checkout.folder, await Deno.realPath(root));
    }
    assert.equal(await Deno.readTextFile(`${root}/version`), "2");
  });
});

Deno.test("neither folder nor ref; no harness: one line each", { ignore }, async () => {
  await inRepository(async (root) => {
    await assert.rejects(
      () => openCheckout("--nowhere", root),
      (error) =>
        error instanceof UsageError &&
        /^Cannot check out "--nowhere": no folder, and git says .*[^\n]$/.test(error.message),
    );
    assert.equal(await worktrees(root), 1);
    await assert.rejects(
      () => openServer(root, "v1"),
      new UsageError(
        'Cannot compare with "v1": it has no lab/micro.ts; its kernels cannot be timed',
      ),
    );
  });
});
