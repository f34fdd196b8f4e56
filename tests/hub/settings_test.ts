import assert from "node:assert/strict";
import { hubSettings } from "../../src/hub/settings.ts";

type Env = Readonly<Record<string, string>>;

function settings(env: Env, files: Env = {}): ReturnType<typeof hubSettings> {
  return hubSettings((name) => ({ HOME: "/home/me", ...env })[name], (path) => files[path]);
}

Deno.test("the cache: HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, ~/.cache, in this order", () => {
  const env: [string, string][] = [
    ["XDG_CACHE_HOME", "/xdg"],
    ["HF_HOME", "~/hf"],
    ["HF_HUB_CACHE", "/cache"],
  ];
  const caches = env.map((_, count) => settings(Object.fromEntries(env.slice(0, count + 1))).cache);
  assert.equal(settings({}).cache, "/home/me/.cache/huggingface/hub");
  assert.deepEqual(caches, ["/xdg/huggingface/hub", "/home/me/hf/hub", "/cache"]);
  assert.equal(settings({ HF_HUB_CACHE: "" }).cache, "/home/me/.cache/huggingface/hub");
});

Deno.test("the token: HF_TOKEN, the file of HF_TOKEN_PATH, the one in HF_HOME", () => {
  const files = { "/hf/token": "hf_home\n", "/token": "hf_path" };
  assert.equal(settings({}).token, undefined);
  assert.equal(settings({ HF_HOME: "/hf" }, files).token, "hf_home");
  assert.equal(settings({ HF_HOME: "/hf", HF_TOKEN_PATH: "/token" }, files).token, "hf_path");
  assert.equal(settings({ HF_TOKEN: " hf_env\n", HF_TOKEN_PATH: "/token" }, files).token, "hf_env");
  assert.equal(settings({ HF_HOME: "/hf" }, files).tokenFrom, "/hf/token");
  assert.equal(settings({ HUGGING_FACE_HUB_TOKEN: "hf_x" }).tokenFrom, "HUGGING_FACE_HUB_TOKEN");
});

Deno.test("endpoint and offline", () => {
  assert.equal(settings({}).endpoint, "https://huggingface.co");
  assert.equal(
    settings({ HF_ENDPOINT: "http://localhost:8080//" }).endpoint,
    "http://localhost:8080",
  );
  for (
    const [value, offline] of [["1", true], ["true", true], ["0", false], ["", false]] as const
  ) {
    assert.equal(settings({ HF_HUB_OFFLINE: value }).offline, offline, value);
  }
});

Deno.test("a proxy, by the names that fetch reads", () => {
  assert.equal(settings({}).proxied, false);
  for (const name of ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "all_proxy"]) {
    assert.equal(settings({ [name]: "http://proxy:3128" }).proxied, true, name);
  }
});
