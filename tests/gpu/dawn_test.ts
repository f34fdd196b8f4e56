import assert from "node:assert/strict";
import { ADD_DAWN, addonPath, DAWN_PACKAGE, denoFolder, loadDawn } from "../../src/gpu/dawn.ts";
import { openWebGpu, webGpuOf } from "../../src/gpu/webgpu.ts";
import { UsageError } from "../../src/errors.ts";

const LINUX = { os: "linux", arch: "x86_64" } as const;

async function inCache(
  files: Readonly<Record<string, string>>,
  test: (cache: string) => void,
): Promise<void> {
  const cache = await Deno.makeTempDir();
  try {
    for (const [path, text] of Object.entries(files)) {
      await Deno.mkdir(`${cache}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.writeTextFile(`${cache}/${path}`, text);
    }
    test(cache);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
}

const VERSION = DAWN_PACKAGE.split("@")[1];
const DIST = `npm/registry.example/webgpu/${VERSION}/dist`;

Deno.test("the addon is that of the system, of the pinned version, from any registry", () =>
  inCache({
    [`${DIST}/linux-x64/dawn.node`]: "",
    [`${DIST}/linux-arm64/dawn.node`]: "",
    [`${DIST}/darwin-universal/dawn.node`]: "",
    [`npm/registry.example/webgpu/0.0.1/dist/win32-x64/dawn.node`]: "",
  }, (cache) => {
    assert.equal(addonPath(cache, LINUX), `${cache}/${DIST}/linux-x64/dawn.node`);
    assert.match(addonPath(cache, { ...LINUX, arch: "aarch64" }) ?? "", /linux-arm64/);
    assert.match(addonPath(cache, { os: "darwin", arch: "aarch64" }) ?? "", /darwin-universal/);
    assert.equal(addonPath(cache, { os: "windows", arch: "x86_64" }), undefined);
    assert.equal(addonPath(undefined, LINUX), undefined);
  }));

Deno.test("without the package one line has the command that adds it", () =>
  inCache({}, (cache) => {
    const env = (name: string) => name === "DENO_DIR" ? cache : undefined;
    assert.throws(() => loadDawn(env, LINUX), (error: Error) => {
      assert.ok(error instanceof UsageError);
      assert.ok(!error.message.includes("\n"));
      assert.ok(error.message.includes(`"${ADD_DAWN}"`), error.message);
      return true;
    });
  }));

Deno.test("an addon that does not load is told with its path", () =>
  inCache({ [`${DIST}/linux-x64/dawn.node`]: "no addon" }, (cache) => {
    const env = (name: string) => name === "DENO_DIR" ? cache : undefined;
    assert.throws(
      () => loadDawn(env, LINUX),
      /^UsageError: Cannot use .*dawn\.node" does not load/,
    );
  }));

Deno.test("Deno's cache lies where each system keeps caches", () => {
  const path = (env: Record<string, string>, os: typeof Deno.build.os = "linux") =>
    denoFolder((name) => env[name], os);
  const HOME = "/home/ada";
  assert.equal(path({ HOME }), "/home/ada/.cache/deno");
  assert.equal(path({ HOME, XDG_CACHE_HOME: "/c" }), "/c/deno");
  assert.equal(path({ HOME, DENO_DIR: "/d" }), "/d");
  assert.equal(path({ HOME }, "darwin"), "/home/ada/Library/Caches/deno");
  assert.equal(path({ LOCALAPPDATA: "C:\\L" }, "windows"), "C:\\L\\deno");
  assert.equal(path({}), undefined);
});

Deno.test("EYRIE_WEBGPU names one of two; unset or empty, none", () => {
  assert.deepEqual(["builtin", "dawn", "", undefined].map(webGpuOf), [
    "builtin",
    "dawn",
    undefined,
    undefined,
  ]);
  assert.throws(() => webGpuOf("wgpu"), /^UsageError: Cannot use EYRIE_WEBGPU "wgpu": it is/);
  assert.equal(openWebGpu("builtin").name, "builtin");
});

Deno.test("the WGSL check has the same Dawn", async () => {
  const config = await Deno.readTextFile(new URL("../wgsl/dawn.jsonc", import.meta.url));
  assert.ok(config.includes(`"${DAWN_PACKAGE}"`));
});

Deno.test("neither the project's imports nor its lockfile name the package", async () => {
  for (const file of ["deno.json", "deno.lock"]) {
    const text = await Deno.readTextFile(new URL(`../../${file}`, import.meta.url));
    assert.doesNotMatch(text, /"(npm:)?webgpu(@[^"]*)?"/, file);
  }
});
