import { equal } from "node:assert/strict";
import denoJson from "../../deno.json" with { type: "json" };

const CLONE = new URL("../../", import.meta.url);

/** Runs something in a folder; its exit code and what it printed. */
async function run(program: string, args: string[], cwd: string | URL, root: string) {
  const child = new Deno.Command(program, {
    args,
    cwd,
    env: { DENO_INSTALL_ROOT: root },
    stdin: "null",
  });
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
}

Deno.test("deno task install makes a command that runs in any folder", async () => {
  const root = await Deno.makeTempDir({ prefix: "eyrie-install-test-" });
  try {
    const task = await run(Deno.execPath(), ["task", "install"], CLONE, root);
    equal(task.code, 0, task.err);
    // The way to the option table is where the packages of the import map are met first.
    const help = await run(`${root}/bin/eyrie`, ["genrate"], root, root);
    equal(help.code, 2);
    equal(
      help.err,
      'eyrie: Cannot run "genrate": no such command, did you mean generate? (eyrie --help lists them)\n',
    );
    const version = await run(`${root}/bin/eyrie`, ["--version"], root, root);
    equal(version.out, `eyrie ${denoJson.version}\n`, version.err);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
