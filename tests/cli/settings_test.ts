import { deepEqual, equal, throws } from "node:assert/strict";
import type { CommandName } from "../../src/cli/options/command.ts";
import { COMMANDS, flagsOf } from "../../src/cli/options/commands.ts";
import { spellingsOf } from "../../src/cli/options/flag.ts";
import { UsageError } from "../../src/errors.ts";
import { type Invocation, parseArguments } from "../../src/cli/options/parse.ts";
import { configPath, countSettings, readSettings } from "../../src/cli/options/settings.ts";

const PATH = "/home/me/.config/eyrie.json";

interface Set {
  readonly env?: Readonly<Record<string, string>>;
  /** The settings file: a value, or the file's text. */
  readonly file?: unknown;
}

function settings({ env = {}, file }: Set) {
  const text = file === undefined || typeof file === "string" ? file : JSON.stringify(file);
  return { env: (name: string) => env[name], path: PATH, text };
}

function invoked(line: string, set: Set): Invocation {
  return parseArguments(line.split(" "), () => settings(set));
}

function options(line: string, set: Set): Record<string, unknown> {
  const invocation = invoked(line, set);
  if (!("options" in invocation)) throw new Error(`${line} has no options`);
  return { ...invocation.options };
}

function refused(line: string, set: Set): string {
  try {
    invoked(line, set);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error(`${line} is not refused`);
}

Deno.test("settings: a flag comes before a variable, that before the file, that before the default", () => {
  const file = { temperature: 0.1, top_p: 0.2, "min-p": 0.3, port: 9000 };
  const env = { EYRIE_TEMPERATURE: "0.4", EYRIE_TOP_P: "0.5", EYRIE_SEED: "", EYRIE_TOP_K: "40" };
  const { temperature, topP, minP, seed, topK } = options("generate --temperature 1", {
    env,
    file,
  });
  deepEqual([temperature, topP, minP, seed, topK], [1, 0.5, 0.3, undefined, 40]);
  // A setting applies only to commands that have the flag.
  equal(options("serve", { env, file })["port"], 9000);
  equal(options("serve", { env: { EYRIE_PORT: "9001" }, file })["port"], 9001);
  equal(options("serve", { env: { EYRIE_PORT: "9001" }, file })["topP"], 0.2);
  deepEqual(options("models", { env, file }), { known: false, json: false });
});

Deno.test("settings: a value of each type, by any long spelling of its flag", () => {
  const file = {
    "model": "org/name",
    "num-steps": 5,
    "stop": ["END", "STOP"],
    "logit-bias": { 7: -1 },
    "ignore-eos": true,
    "quiet": false,
    "think": "off",
    "batch-sizes": [1, 4],
    "policies": ["off", "ema"],
    "speculative_draft_model_path": "none",
  };
  const found = options("generate --num-steps 0", { file });
  deepEqual(
    ["model", "numSteps", "stop", "logitBias", "ignoreEos", "quiet", "think", "draft"]
      .map((key) => found[key]),
    ["org/name", 0, ["END", "STOP"], { 7: -1 }, true, false, "off", "none"],
  );
  const bench = options("bench", { file: { "batch-sizes": [1, 4], "policies": "off,ema" } });
  deepEqual([bench["batchSizes"], bench["policies"]], [[1, 4], ["off", "ema"]]);
  // The policy for answers is not one of the policies that are compared.
  const one = { "policy": "ema", "draft-tree": "5:4:8" };
  const measured = options("bench", { file: one, env: { EYRIE_POLICY: "dsd" } });
  deepEqual([measured["policies"], measured["trees"]], [[], []]);
  deepEqual(options("simulate", { file: one })["policies"], []);
  equal(options("generate", { file: { "policy": "ema" } })["policy"], "ema");
  const env = { EYRIE_STOP: "END", EYRIE_IGNORE_EOS: "1", EYRIE_QUIET: "false" };
  const set = options("generate", { env });
  deepEqual([set["stop"], set["ignoreEos"], set["quiet"]], [["END"], true, false]);
});

Deno.test("settings: mistakes are one line that names file and key, or the variable", () => {
  const cases: [string, Set, string][] = [
    ["generate", { file: "{" }, `Cannot read "${PATH}": not JSON (`],
    [
      "generate",
      { file: "[]" },
      `Cannot read "${PATH}": it is not a JSON object of flags and their values`,
    ],
    [
      "models",
      { file: { temprature: 1 } },
      `Cannot use "${PATH}": temprature is no flag of any command, did you mean temperature?`,
    ],
    ["models", { file: { m: "x" } }, `Cannot use "${PATH}": m is no flag of any command`],
    [
      "models",
      { file: { bandwidth: 9 } },
      `Cannot use "${PATH}": the flag bandwidth was removed; set the variable EYRIE_BANDWIDTH`,
    ],
    [
      "generate",
      { file: { temperature: "hot" } },
      `Cannot use "${PATH}": temperature: it is "hot", allowed is a number from 0 to 100`,
    ],
    [
      "generate",
      { file: { quiet: "yes" } },
      `"${PATH}": quiet: it is "yes", allowed is true or false`,
    ],
    [
      "generate",
      { file: { model: {} } },
      `"${PATH}": model: it is {}, allowed is a folder or org/`,
    ],
    ["generate", { file: { seed: [1] } }, `"${PATH}": seed: it is [1], allowed is an integer from`],
    ["generate", { file: { stop: null } }, `"${PATH}": stop: it is null, allowed is text`],
    [
      "chat",
      { env: { EYRIE_TOP_P: "2" } },
      'Cannot use "EYRIE_TOP_P": it is "2", allowed is a number above 0, at most 1',
    ],
  ];
  for (const [line, set, message] of cases) {
    const said = refused(line, set);
    equal(said.includes(message), true, said);
    equal(said.includes("\n"), false);
  }
  // Help works whatever the file says. So do commands that lack the flag of a wrong value.
  equal(invoked("generate --help", { file: "{" }).command, "print");
  equal(invoked("help", { file: "{" }).command, "print");
  equal(invoked("models", { file: { temperature: "hot" } }).command, "models");
});

Deno.test("settings: what contradicts what was typed is left out", () => {
  const file = { "max-batch": 32, "remote": "http://127.0.0.1:1", "quiet": true, "model": "org/a" };
  const local = options("generate --quantize q4 --stats", { file });
  deepEqual(
    [local["remote"], local["quiet"], local["model"], local["quantize"]],
    [undefined, false, "org/a", "q4"],
  );
  equal(options("generate --batch f", { file: { "max-batch": 32 } })["maxBatch"], 32);
  equal(options("generate", { file: { "max-batch": 32 } })["maxBatch"], 8);
  // So it is where the flags are of one command alone, or a prompt is typed.
  const left = (line: string, file: Record<string, unknown>) => {
    const found = options(line, { file });
    return Object.keys(file).map((key) => found[key.replace(/-(.)/, (_, c) => c.toUpperCase())]);
  };
  deepEqual(left("generate --draft-tree 5:4:8", { "num-steps": 5 }), [undefined]);
  deepEqual(left("generate --num-steps 5", { "draft-tree": "auto" }), [undefined]);
  deepEqual(left("generate --draft-tree topk=4", { "num-steps": 5 }), [5]);
  deepEqual(left("generate --grammar g", { regex: "a", "json-schema": "object" }), [
    undefined,
    undefined,
  ]);
  deepEqual(left("generate prompt", { batch: "f" }), [undefined]);
  deepEqual(left("generate --batch f", { "prompt-file": "p", prediction: "p" }), [
    undefined,
    undefined,
  ]);
  // Each setting needs the other, so their order must not matter.
  const needy = options("generate", { file: { "logprobs": 2, "json": true } });
  deepEqual([needy["logprobs"], needy["json"]], [2, true]);
});

Deno.test("settings: the file's draft goes with the file's model alone", () => {
  const file = { draft: "org/head", model: "org/a" };
  const of = (line: string, set: Set) => {
    const { model, draft } = options(line, set);
    return [model, draft];
  };
  deepEqual(of("chat", { file }), ["org/a", "org/head"]);
  deepEqual(of("chat -m org/b", { file }), ["org/b", undefined]);
  deepEqual(of("run org/b", { file }), ["org/b", undefined]);
  deepEqual(of("chat", { file, env: { EYRIE_MODEL: "org/b" } }), ["org/b", undefined]);
  deepEqual(of("chat", { file, env: { EYRIE_DRAFT: "none" } }), ["org/a", "none"]);
  deepEqual(of("chat", { file: { draft: "org/head" } }), [undefined, undefined]);
  deepEqual(of("chat -m org/b", { file: { draft: "none" } }), ["org/b", "none"]);
  deepEqual(of("chat --remote http://a", { file }), [undefined, undefined]);
});

Deno.test("settings: variables that are read elsewhere come before the file all the same", () => {
  const file = { "api-key": "of the file", "webgpu": "dawn" };
  const env = { EYRIE_API_KEY: "of the environment", EYRIE_WEBGPU: "builtin" };
  const { apiKey, webgpu } = options("serve", { file });
  deepEqual([apiKey, webgpu], ["of the file", "dawn"]);
  const { apiKey: later, webgpu: other } = options("serve", { file, env });
  deepEqual([later, other], [undefined, undefined]);
});

Deno.test("settings: no variable of another meaning has the name of a flag", async () => {
  const page = await Deno.readTextFile(new URL("../../docs/environment.md", import.meta.url));
  const flags = new Set(
    (Object.keys(COMMANDS) as CommandName[]).flatMap((name) =>
      Object.values(flagsOf(name)).flatMap(spellingsOf)
    ),
  );
  const named = new Set(page.match(/\bEYRIE_[A-Z_]+/g));
  const both = named.values().filter((name) =>
    flags.has(`--${name.slice("EYRIE_".length).toLowerCase().replaceAll("_", "-")}`)
  );
  deepEqual([...both].toSorted(), [
    ...["EYRIE_API_KEY", "EYRIE_DRAFT", "EYRIE_MODEL", "EYRIE_PORT"],
    ...["EYRIE_QUIET", "EYRIE_TOP_P", "EYRIE_WEBGPU"],
  ]);
});

Deno.test("settings: where the file is", async () => {
  const at = (env: Record<string, string>, os: typeof Deno.build.os = "linux") =>
    configPath((name) => env[name], os);
  equal(at({ HOME: "/home/me" }), PATH);
  equal(at({ HOME: "/home/me" }, "darwin"), PATH);
  equal(at({ HOME: "/home/me", XDG_CONFIG_HOME: "/x" }), "/x/eyrie.json");
  equal(at({ HOME: "/home/me", XDG_CONFIG_HOME: "" }), PATH);
  equal(
    at({ APPDATA: "C:\\Users\\me\\AppData\\Roaming" }, "windows")?.endsWith("Roaming/eyrie.json"),
    true,
  );
  equal(at({ HOME: "/home/me", EYRIE_CONFIG: "mine.json" }), "mine.json");
  equal(at({}), undefined);

  const folder = await Deno.makeTempDir();
  const read = (env: Record<string, string>) => readSettings((name) => env[name], "linux");
  equal(read({ XDG_CONFIG_HOME: folder }).text, undefined);
  throws(
    () => read({ EYRIE_CONFIG: `${folder}/none.json` }),
    new UsageError(`Cannot read "${folder}/none.json" of EYRIE_CONFIG: no such file`),
  );
  await Deno.writeTextFile(`${folder}/eyrie.json`, '{"model": "org/a", "port": 1}');
  const found = read({ XDG_CONFIG_HOME: folder });
  deepEqual([found.path, countSettings(found)], [`${folder}/eyrie.json`, 2]);
  throws(() => read({ EYRIE_CONFIG: folder }), /^UsageError: Cannot read ".*" of EYRIE_CONFIG: /);
  equal(countSettings(read({ EYRIE_CONFIG: "/dev/null" })), 0);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("settings: the program reads them", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/eyrie.json`, '{"model": "/no/such"}');
  const run = async (env: Record<string, string>) => {
    const main = new URL("../../main.ts", import.meta.url).pathname;
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", main, "inspect"],
      env: { HOME: folder, DENO_DIR: Deno.env.get("DENO_DIR") ?? denoDir(), ...env },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).output();
    return [code, new TextDecoder().decode(stderr)];
  };
  const none = { XDG_CONFIG_HOME: "", EYRIE_CONFIG: `${folder}/eyrie.json` };
  const said = 'eyrie: Cannot open "/no/such": no such folder; "/" has no "no"\n';
  deepEqual(await run(none), [2, said]);
  deepEqual(await run({ ...none, EYRIE_MODEL: "/nor/this" }), [
    2,
    'eyrie: Cannot open "/nor/this": no such folder; "/" has no "nor"\n',
  ]);
  await Deno.remove(folder, { recursive: true });
});

function denoDir(): string {
  return `${Deno.env.get("HOME")}/.cache/deno`;
}
