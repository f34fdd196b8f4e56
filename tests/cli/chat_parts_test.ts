import assert from "node:assert/strict";
import { type Entry, runEntry, slashHelp } from "../../src/cli/chat/commands.ts";
import { feed, type Pending } from "../../src/cli/chat/entries.ts";
import { SETTING_NAMES, settingTexts, withSetting } from "../../src/cli/chat/settings.ts";
import {
  beforeAnswer,
  type ChatState,
  fitContext,
  withAnswer,
  withoutOldest,
  withQuestion,
} from "../../src/cli/chat/state.ts";
import { chatFromJson, chatToJson, loadChat, saveChat } from "../../src/cli/chat/store.ts";
import { expandHome } from "../../src/cli/chat/paths.ts";
import type { ChatMessage } from "../../src/text/chat_template.ts";

const EMPTY: ChatState = {
  system: "Be brief.",
  messages: [],
  settings: {
    temperature: 0.7,
    topK: 0,
    topP: 1,
    minP: 0,
    repetitionPenalty: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: {},
    maxTokens: 100,
    seed: undefined,
    stop: [],
    numSteps: undefined,
    openedSteps: 3,
    think: "auto",
    draft: true,
    stats: false,
    format: undefined,
    remote: false,
  },
  attempt: 0,
  tokens: 0,
};

function talked(exchanges: number): ChatState {
  let state = EMPTY;
  for (let at = 1; at <= exchanges; at++) {
    state = withAnswer(withQuestion(state, `question ${at}`), { text: `answer ${at}` }, at * 10);
  }
  return state;
}

function typed(text: string, state: ChatState = EMPTY, drafts = true) {
  return runEntry(state, { text, literal: false }, { drafts });
}

Deno.test("plain text is a question, blank lines are nothing", () => {
  const [state, next] = typed("hello");
  assert.deepEqual(state.messages, [{ role: "user", content: "hello" }]);
  assert.equal(next.kind, "answer");
  for (const blank of ["", "   ", "\t"]) {
    assert.deepEqual(typed(blank), [EMPTY, { kind: "nothing" }]);
  }
});

Deno.test("slash commands that change the state", () => {
  const [cleared, said] = typed("/clear", talked(2));
  assert.deepEqual([cleared, said], [{ ...EMPTY, answeredAs: cleared.answeredAs }, {
    kind: "say",
    text: "Cleared.",
  }]);
  assert.equal(typed("/system You are  a bird. ")[0].system, "You are  a bird.");
  assert.deepEqual(typed("/system"), [EMPTY, {
    kind: "say",
    text: "Be brief.\n(/system none removes it)",
  }]);
  const [bare] = typed("/system none");
  assert.equal(bare.system, undefined);
  assert.deepEqual(typed("/system", bare)[1], {
    kind: "say",
    text: "No system message; /system TEXT sets one.",
  });
  for (const leave of ["/bye", "/exit", "/quit"]) {
    assert.deepEqual(typed(leave)[1], { kind: "leave" });
  }
  assert.deepEqual(typed("/show")[1], { kind: "show" });
  const save = { kind: "save", path: "my chat.json", force: false };
  assert.deepEqual(typed("/save my chat.json ")[1], save);
  assert.deepEqual(typed("/save -f my chat.json ")[1], { ...save, force: true });
  assert.deepEqual(typed("/save -five")[1], { ...save, path: "-five" });
  assert.deepEqual(typed("/load x")[1], { kind: "load", path: "x" });
  assert.deepEqual(typed('/load "my chat.json" ')[1], { kind: "load", path: "my chat.json" });
  assert.deepEqual(typed("/save -f 'my chat.json'")[1], { ...save, force: true });
  for (const help of ["/help", "/?"]) {
    assert.deepEqual(typed(help)[1], { kind: "say", text: slashHelp() });
  }
  const lists = Object.entries(settingTexts(EMPTY.settings))
    .map(([name, text]) => `${name.padEnd("repetition-penalty".length)}  ${text}`).join("\n");
  assert.deepEqual(typed("/set")[1], { kind: "say", text: lists });
});

Deno.test("/regen goes back before the newest answer and counts attempts", () => {
  const [once, next] = typed("/regen", talked(2));
  assert.equal(next.kind, "answer");
  assert.equal(once.messages.length, 3);
  assert.equal(once.attempt, 1);
  const again = beforeAnswer(withAnswer(once, { text: "other" }, 5));
  assert.equal(again?.attempt, 2);
  assert.equal(withQuestion(once, "new").attempt, 0);
  assert.throws(() => typed("/regen"), { message: /there is no answer yet/ });
});

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ["/foo", /^Cannot run "\/foo": no such command; \/help lists them$/],
  ["/", /^Cannot run "\/"/],
  ["  /foo bar", /^Cannot run "\/foo"/],
  ["/Help", /no such command/],
  ["/hlep", /^Cannot run "\/hlep": no such command, did you mean \/help\? \(\/help lists them;/],
  ["/help sav", /^Cannot run "\/sav": no such command, did you mean \/save\?/],
  [
    "/set temprature 1",
    /^Cannot set "temprature": no such setting, did you mean temperature\? \(\/set lists them\)$/,
  ],
  ["/set format /no/such", /^Cannot open "\/no\/such": no such file$/],
  ["/set format {", /^Cannot use the JSON schema: it is not JSON/],
  [
    '/set format {"type": "objec"}',
    /^Cannot constrain the output: JSON schema, at "#": the type "objec" is none of/,
  ],
  [
    "/set format regex (",
    /^Cannot constrain the output: regular expression "\(": Unterminated group$/,
  ],
  ["/set format regex", /allowed is json, a JSON schema or its file, regex PATTERN, or off$/],
  ["/undo", /^Cannot run "\/undo": nothing was said yet$/],
  ["/drop none", /^Cannot run "\/drop none": COUNT is an integer from 1$/],
  ["/toString", /no such command/],
  ["/bye now", /^Cannot run "\/bye now": \/bye takes no argument$/],
  ["/save", /^Cannot run "\/save": FILE is missing$/],
  ["/load  ", /FILE is missing/],
  ["/save -f", /^Cannot run "\/save": FILE is missing$/],
  [
    "/set colour red",
    /^Cannot set "colour": allowed are temperature, top-p, top-k, min-p, repetition-penalty, frequency-penalty, presence-penalty, max-tokens, seed, num-steps, stop, think, draft, stats, format$/,
  ],
  ["/set think perhaps", /^Cannot use "\/set think perhaps": allowed is auto or on or off$/],
  ["/set stop", /^Cannot set "stop": it takes one value, a text, a JSON list of texts, or none$/],
  ['/set stop ["a", 1]', /^Cannot use "\/set stop \["a", 1\]": allowed is a text, a JSON list/],
  ['/set stop "', /^Cannot use "\/set stop ""/],
  [
    "/set policy ema",
    /^Cannot set "policy": the policy is fixed when the model is opened; start with --policy NAME$/,
  ],
  ["/set toString 1", /^Cannot set "toString"/],
  ["/set top-p", /^Cannot set "top-p": it takes one value, a number above 0, at most 1$/],
  ["/set top-p 1 2", /it takes one value/],
  ["/set top-p 0", /^Cannot use "\/set top-p 0": allowed is a number above 0, at most 1$/],
  ["/set num-steps 17", /allowed is an integer from 0 to 16/],
  ["/set draft maybe", /^Cannot use "\/set draft maybe": allowed is on or off$/],
];

for (const [line, message] of REFUSED) {
  Deno.test(`chat refuses: ${line}`, () => {
    assert.throws(() => typed(line), { name: "UsageError", message });
  });
}

Deno.test("/set changes each setting, and /show tells it back", () => {
  const values: Record<string, string> = {
    "temperature": "0.25",
    "top-p": "0.9",
    "top-k": "40",
    "min-p": "0.05",
    "repetition-penalty": "1.2",
    "frequency-penalty": "0.5",
    "presence-penalty": "-1",
    "max-tokens": "7",
    "seed": "42",
    "num-steps": "5",
    "stop": '["END","\\n\\n"]',
    "think": "off",
    "draft": "off",
    "stats": "on",
    "format": '{"type":"object"}',
  };
  assert.deepEqual(Object.keys(values).toSorted(), SETTING_NAMES.toSorted());
  let state = EMPTY;
  for (const [name, value] of Object.entries(values)) {
    [state] = typed(`/set ${name} ${value}`, state);
  }
  assert.deepEqual(settingTexts(state.settings), values);
  assert.equal(typed("/set seed random", state)[0].settings.seed, undefined);
  assert.equal(typed("/set max-tokens context", state)[0].settings.maxTokens, undefined);
  const stop = (text: string) => typed(`/set stop ${text}`, state)[0].settings.stop;
  assert.deepEqual([stop("none"), stop("a b"), stop('"none"'), stop('["a","\\n"]')], [
    ...[[], ["a b"], ["none"], ["a", "\n"]],
  ]);
  assert.throws(() => typed("/set draft on", EMPTY, false), { message: /no draft is loaded/ });
});

Deno.test("/set takes names with underscores, and /help tells what a command takes", () => {
  assert.equal(typed("/set max_tokens 9")[0].settings.maxTokens, 9);
  const text = (line: string) => {
    const [, next] = typed(line);
    return next.kind === "say" ? next.text : assert.fail();
  };
  assert.match(text("/help set"), /^\/set \[NAME VALUE\] {2}.*\n\ntemperature {9}a number/);
  assert.match(text("/help /bye"), /^\/bye .*\n\/exit {2}the same\n\/quit {2}the same$/);
});

Deno.test("/set format: JSON, a schema, its file, a regular expression, off", async () => {
  const dir = await Deno.makeTempDir();
  const file = `${dir}/my schema.json`;
  await Deno.writeTextFile(file, '{ "type": "string" }');
  const format = (value: string) => typed(`/set format ${value}`)[0].settings.format;
  const schema = {
    text: '{"type":"string"}',
    grammar: { kind: "json schema", schema: { type: "string" } },
  };
  for (const value of [file, `"${file}"`, '{"type": "string"}']) {
    assert.deepEqual(format(value), schema, value);
  }
  for (const value of ["json", "object"]) {
    assert.deepEqual(format(value), { text: "json", grammar: { kind: "json object" } }, value);
  }
  assert.deepEqual(format("regex a b?")?.grammar, { kind: "regex", pattern: "a b?" });
  assert.equal(format("off"), undefined);
  const state = typed(`/set format ${file}`)[0];
  await Deno.remove(dir, { recursive: true });
  assert.deepEqual(chatFromJson(chatToJson(state, "m"), EMPTY).state.settings.format, schema);
});

Deno.test("two slashes begin a message with one", () => {
  const [state, next] = typed("//etc/hosts: what is it?");
  assert.equal(next.kind, "answer");
  assert.equal(state.messages[0]?.content, "/etc/hosts: what is it?");
});

Deno.test("/undo takes the newest exchange back, /drop the oldest ones", () => {
  const [undone] = typed("/undo", talked(3));
  assert.deepEqual(undone.messages, talked(2).messages);
  const contents = (line: string) =>
    typed(line, talked(3))[0].messages.map(({ content }) => content);
  assert.deepEqual(contents("/drop"), ["question 2", "answer 2", "question 3", "answer 3"]);
  assert.deepEqual(contents("/drop 2"), ["question 3", "answer 3"]);
  assert.deepEqual(contents("/drop 9"), []);
  // As many steps as that would take minutes.
  assert.deepEqual(contents("/drop 99999999999"), []);
});

Deno.test("a loaded chat switches the draft as it was, where there is one", () => {
  const off = chatToJson({ ...EMPTY, settings: { ...EMPTY.settings, draft: false } }, "m");
  assert.equal(chatFromJson(off, EMPTY, { drafts: true }).state.settings.draft, false);
  const without = { ...EMPTY, settings: { ...EMPTY.settings, draft: false } };
  const on = chatToJson(EMPTY, "m");
  assert.equal(chatFromJson(on, without, { drafts: true }).state.settings.draft, true);
  assert.equal(chatFromJson(on, without, { drafts: false }).state.settings.draft, false);
});

Deno.test("quoted or pasted text is a message even if it looks like a command", () => {
  const [state, next] = runEntry(EMPTY, { text: "/bye\nreally", literal: true }, { drafts: true });
  assert.equal(next.kind, "answer");
  assert.equal(state.messages[0]?.content, "/bye\nreally");
});

const ENTRIES: readonly (readonly [string[], Entry])[] = [
  [["one"], { text: "one", literal: false }],
  [["pasted\ntext"], { text: "pasted\ntext", literal: true }],
  [['"""', "a", "", "b", '"""'], { text: "a\n\nb", literal: true }],
  [['"""a', 'b"""'], { text: "a\nb", literal: true }],
  [['"""a"""'], { text: "a", literal: true }],
  [[' """  a', ' b """ '], { text: "  a\n b ", literal: true }],
  [['"""', '/bye"""'], { text: "/bye", literal: true }],
  [['""""""'], { text: "", literal: true }],
  [['"""', '"""'], { text: "", literal: true }],
  [['a """'], { text: 'a """', literal: false }],
];

for (const [lines, entry] of ENTRIES) {
  Deno.test(`lines to entry: ${JSON.stringify(lines)}`, () => {
    let pending: Pending;
    for (const [at, line] of lines.entries()) {
      const fed = feed(pending, line);
      if ("entry" in fed) {
        assert.equal(at, lines.length - 1, "the last line ends it");
        assert.deepEqual(fed.entry, entry);
        return;
      }
      pending = fed.pending;
    }
    assert.fail("did not end");
  });
}

async function fit(state: ChatState, contextLength: number, maxContextLength = 1000) {
  const encode = (messages: readonly ChatMessage[]) =>
    Promise.resolve(messages.flatMap(() => [1, 2, 3, 4, 5]));
  return await fitContext(state, { encode, contextLength, maxContextLength });
}

Deno.test("a full context drops the oldest exchanges and keeps the system message", async () => {
  const asked = withQuestion(talked(3), "newest"); // system + 7 messages = 40 tokens
  assert.equal((await fit(asked, 46)).dropped, 0); // room for 5
  const { state, dropped, promptIds } = await fit(asked, 44);
  assert.equal(dropped, 1);
  assert.equal(promptIds.length, 30);
  assert.equal(state.system, "Be brief.");
  assert.deepEqual(state.messages[0], { role: "user", content: "question 2" });
  assert.equal((await fit(asked, 24)).dropped, 2);
  // The newest question alone may use the room kept for answers.
  const alone = await fit(asked, 11);
  assert.deepEqual([alone.dropped, alone.state.messages.length], [3, 1]);
  await assert.rejects(fit(asked, 10), {
    name: "UsageError",
    message:
      /makes a prompt of 10 tokens, the context holds 10; send less, or start with --context-length$/,
  });
  await assert.rejects(fit(asked, 10, 10), { message: /the context holds 10; send less$/ });
  assert.equal(withoutOldest(withQuestion(EMPTY, "only")), undefined);
});

Deno.test("a saved chat comes back, settings too", async () => {
  const dir = await Deno.makeTempDir();
  const path = `${dir}/chat.json`;
  const settings = withSetting(withSetting(EMPTY.settings, "top-k", "9"), "seed", "5");
  const state = { ...talked(2), settings };
  saveChat(path, EMPTY, "fake");
  await Deno.chmod(path, 0o600);
  await Deno.symlink(path, `${path}.link`);
  saveChat(`${path}.link`, state, "fake");
  assert.ok((await Deno.lstat(`${path}.link`)).isSymlink, "a link is kept");
  assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
  await Deno.remove(`${path}.link`);
  const { answeredAs: _, ...kept } = state;
  assert.deepEqual(await loadChat(path, EMPTY), { state: { ...kept, tokens: 0 }, model: "fake" });
  assert.deepEqual(Array.from(Deno.readDirSync(dir), ({ name }) => name), ["chat.json"]);
  const bare = { ...state, system: undefined };
  assert.deepEqual(chatFromJson(chatToJson(bare, "m"), EMPTY).state.system, undefined);
  await Deno.remove(dir, { recursive: true });
});

Deno.test("a saved chat tells the steps it ran with, and loads as a choice only what was one", () => {
  const loaded = (state: ChatState, current: ChatState) =>
    chatFromJson(chatToJson(state, "m"), current).state.settings;
  const chosen = { ...EMPTY, settings: withSetting(EMPTY.settings, "num-steps", "5") };
  const told = (state: ChatState) => JSON.parse(chatToJson(state, "m")).settings["num-steps"];
  assert.deepEqual([told(EMPTY), told(chosen)], ["3", "5"]);
  assert.equal(loaded(chosen, EMPTY).numSteps, 5);
  assert.equal(loaded(EMPTY, chosen).numSteps, undefined);
  const elsewhere = { ...EMPTY, settings: { ...EMPTY.settings, openedSteps: 1 } };
  assert.equal(loaded(EMPTY, elsewhere).numSteps, 3);
});

Deno.test("a chat that cannot be saved leaves nothing behind", async () => {
  const dir = await Deno.makeTempDir();
  assert.throws(() => saveChat(`${dir}/no/chat.json`, EMPTY, "m"), {
    name: "UsageError",
    message: `Cannot write "${dir}/no/chat.json": no such file or folder`,
  });
  await Deno.mkdir(`${dir}/taken`);
  assert.throws(() => saveChat(`${dir}/taken`, EMPTY, "m"), {
    name: "UsageError",
    message: `Cannot write "${dir}/taken": it is a folder`,
  });
  assert.deepEqual(Array.from(Deno.readDirSync(dir), ({ name }) => name), ["taken"]);
  await Deno.remove(dir, { recursive: true });
});

Deno.test("~ is the user's folder", () => {
  const home = Deno.env.get("HOME") ?? assert.fail();
  const paths = ["~", "~/a ~.json", "~x/a", "a/~/b"].map(expandHome);
  assert.deepEqual(paths, [home, `${home}/a ~.json`, "~x/a", "a/~/b"]);
  assert.deepEqual(typed("/load ~/x")[1], { kind: "load", path: `${home}/x` });
});

Deno.test("a saved chat keeps what was thought, and settings of the command line stay", () => {
  const state = withAnswer(withQuestion(EMPTY, "q"), { text: "a", reasoning: "because" }, 5);
  const settings = withSetting(withSetting(state.settings, "top-k", "9"), "temperature", "0");
  const file = chatToJson({ ...state, settings }, "m");
  const loaded = chatFromJson(file, EMPTY, { kept: ["temperature"] }).state;
  assert.deepEqual(loaded.messages[1], {
    role: "assistant",
    content: "a",
    reasoning_content: "because",
  });
  assert.deepEqual([loaded.settings.topK, loaded.settings.temperature], [9, 0.7]);
});

const good = JSON.parse(chatToJson(talked(1), "m"));
const BROKEN: readonly (readonly [string, string, RegExp])[] = [
  ["not JSON", "{", /JSON/],
  ["lines", "a:\nb", /: it is not JSON$/],
  ["binary", "\u0000\u0001", /JSON/],
  ["other JSON", "[]", /it is not a conversation/],
  ["other version", JSON.stringify({ ...good, eyrie_chat: 2 }), /it is not a conversation/],
  ["system", JSON.stringify({ ...good, system: 3 }), /system is not text/],
  ["no messages", JSON.stringify({ ...good, messages: undefined }), /messages is not a list/],
  ["half", JSON.stringify({ ...good, messages: good.messages.slice(0, 1) }), /has no answer/],
  ["roles", JSON.stringify({ ...good, messages: good.messages.toReversed() }), /messages\[0\]/],
  ["content", JSON.stringify({ ...good, messages: [{ role: "user" }, 4] }), /messages\[0\]/],
  [
    "setting",
    JSON.stringify({ ...good, settings: { "top-p": 0 } }),
    /": its setting top-p is 0, allowed is a number above 0, at most 1$/,
  ],
  ["settings", JSON.stringify({ ...good, settings: [] }), /settings is not an object/],
];

for (const [name, text, message] of BROKEN) {
  Deno.test(`a broken chat file is one line: ${name}`, async () => {
    const path = await Deno.makeTempFile();
    await Deno.writeTextFile(path, text);
    await assert.rejects(loadChat(path, EMPTY), (error: Error) => {
      assert.equal(error.name, "UsageError");
      assert.match(error.message, message);
      assert.ok(error.message.startsWith(`Cannot load "${path}": `));
      assert.ok(!error.message.includes("\n"));
      return true;
    });
    await Deno.remove(path);
  });
}
