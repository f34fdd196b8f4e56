import { deepEqual, equal } from "node:assert/strict";
import { cacheFolders, cacheState } from "../../../src/cli/doctor/caches.ts";

type Os = typeof Deno.build.os;

function paths(env: Record<string, string>, os: Os = "linux"): (string | undefined)[] {
  return cacheFolders((name) => env[name], os).map(({ path }) => path);
}

Deno.test("cache folders follow the variables of their owners", () => {
  const HOME = "/home/ada";
  deepEqual(paths({ HOME }), ["/home/ada/.cache/huggingface/hub", "/home/ada/.cache/deno"]);
  deepEqual(paths({ HOME, XDG_CACHE_HOME: "/c" }), ["/c/huggingface/hub", "/c/deno"]);
  deepEqual(paths({ HOME, HF_HOME: "/hf", DENO_DIR: "/d" }), ["/hf/hub", "/d"]);
  deepEqual(paths({ HOME, HF_HOME: "/hf", HF_HUB_CACHE: "/hub" })[0], "/hub");
  deepEqual(paths({ HOME, HF_HUB_CACHE: "", DENO_DIR: "" }), paths({ HOME }));
  deepEqual(paths({ HOME }, "darwin")[1], "/home/ada/Library/Caches/deno");
  deepEqual(paths({ HOME, HUGGINGFACE_HUB_CACHE: "/old" })[0], "/old");
  deepEqual(paths({ HOME, HF_HOME: "~/hf" })[0], "/home/ada/hf/hub");
  deepEqual(paths({}), ["./.cache/huggingface/hub", undefined]);
});

Deno.test("a folder that is not there yet tells the room of its parent", async () => {
  const path = await Deno.makeTempDir();
  try {
    const state = cacheState({ name: "x", path: `${path}/not/yet` });
    equal(state.exists, false);
    equal((state.freeBytes ?? 0) > 0, true);
    equal(cacheState({ name: "x", path }).exists, true);
    equal(cacheState({ name: "x", path: undefined }).exists, false);
  } finally {
    await Deno.remove(path);
  }
});
