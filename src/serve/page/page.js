/**
 * The page's script, a module that the browser gets as it is. Conversations are kept in the browser's
 * local storage, the key of the server for the session of the tab.
 */
const { lexer } = await import(new URL("marked.js", location.href));

const byId = (id) => document.getElementById(id);
const talk = byId("talk");
const text = byId("text");
const send = byId("send");
const key = byId("key");
const notice = byId("notice");

/** More conversations than that are forgotten, the oldest first. */
const MAX_CONVERSATIONS = 50;
const STORE = "eyrie.conversations";
const SETTINGS = ["temperature", "seed", "tokens"];

/**
 * A conversation is { id, system, turns }. A turn is { role, content } and of the assistant also
 * { reasoning, pieces, stats }: its text in pieces of [text, shade], and the line of its figures.
 */
let conversations = readConversations();
let current = conversations[0] ?? newConversation();
/** The answer that is streamed: { controller, view }. */
let running;

function newConversation() {
  return { id: crypto.getRandomValues(new Uint32Array(1))[0], system: "", turns: [] };
}

/** Where storage is full or forbidden, conversations are only lost at a reload: the error is ignored. */
function stored(name, storage = "localStorage") {
  try {
    return globalThis[storage].getItem(name);
  } catch {
    return null;
  }
}

function store(name, value, storage = "localStorage") {
  try {
    globalThis[storage].setItem(name, value);
  } catch {
    // As above.
  }
}

function readConversations() {
  try {
    const kept = JSON.parse(stored(STORE) ?? "[]");
    return kept.filter(({ id, turns }) => typeof id === "number" && Array.isArray(turns));
  } catch {
    return [];
  }
}

function keepConversations() {
  conversations = [current, ...conversations.filter(({ id }) => id !== current.id)]
    .filter(({ turns }) => turns.length > 0).slice(0, MAX_CONVERSATIONS);
  store(STORE, JSON.stringify(conversations));
  listConversations();
}

function titleOf({ turns }) {
  const [first] = turns;
  return first === undefined ? "New conversation" : first.content.replace(/\s+/g, " ").slice(0, 40);
}

function listConversations() {
  const shown = conversations.some(({ id }) => id === current.id)
    ? conversations
    : [current, ...conversations];
  byId("conversations").replaceChildren(...shown.map((each) => {
    const option = element("option", "", titleOf(each));
    option.value = each.id;
    option.selected = each.id === current.id;
    return option;
  }));
}

function ask(path, init = {}) {
  const headers = key.value === "" ? {} : { authorization: `Bearer ${key.value}` };
  return fetch(path, { ...init, headers: { "content-type": "application/json", ...headers } });
}

function element(name, className = "", content = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = content;
  return made;
}

function button(label, action) {
  const made = element("button", "", label);
  made.type = "button";
  made.addEventListener("click", () => action(made));
  return made;
}

/** Shows an error above the message field, with buttons for what can be done. */
function notify(message, ...actions) {
  notice.hidden = message === "";
  notice.replaceChildren(element("span", "", message), ...actions);
}

/** Writes which model answers and how it drafts, or what the server waits for, until it is ready. */
async function showModel() {
  try {
    const response = await ask("server_info");
    byId("keyed").hidden = response.status !== 401 && key.value === "";
    if (response.status === 401) {
      byId("model").textContent = "the server asks for a key";
      return;
    }
    const info = await response.json();
    byId("model").textContent = response.ok ? modelText(info) : info.error.message;
    if (response.status !== 503) return;
  } catch {
    byId("model").textContent = "the server does not answer";
  }
  setTimeout(showModel, 1000);
}

function modelText(info) {
  const steps = info.speculative_adaptive ? "adaptive" : `${info.speculative_num_steps} steps`;
  const draft = info.speculative_algorithm
    ? `${info.speculative_algorithm}, ${steps}`
    : "no drafts";
  return `${info.served_model_name}, ${draft}, ${info.device.adapter}`;
}

/** The number in a field; undefined where it is empty, which leaves the choice to the server. */
function numberOf(id) {
  return byId(id).value === "" ? undefined : Number(byId(id).value);
}

/** What the server refused: the message and its error's type. */
class Refusal extends Error {
  constructor({ message, type }, status) {
    super(message);
    this.type = type;
    this.status = status;
  }
}

/** Streams an answer to the current conversation into a view. @throws Refusal */
async function stream({ drafts, view, signal }) {
  const { system, turns } = current;
  const messages = turns.map(({ role, content }) => ({ role, content }));
  const response = await ask("v1/chat/completions", {
    method: "POST",
    signal,
    body: JSON.stringify({
      messages: system.trim() === ""
        ? messages
        : [{ role: "system", content: system }, ...messages],
      temperature: numberOf("temperature"),
      seed: numberOf("seed"),
      max_tokens: numberOf("tokens"),
      stream: true,
      logprobs: true,
      return_rounds: true,
      num_steps: drafts ? undefined : 0,
    }),
  });
  if (!response.ok || response.body === null) {
    throw new Refusal((await response.json()).error, response.status);
  }
  for await (const event of eventsOf(response.body)) {
    if (event.error) throw new Refusal(event.error);
    for (const choice of event.choices) view.add(choice);
    if (event.timings) view.end(event.timings);
  }
}

async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    held += decoder.decode(value, { stream: true });
    const blocks = held.split("\n\n");
    held = blocks.pop() ?? "";
    for (const block of blocks) {
      // Comments keep the connection of a request that waits.
      if (!block.startsWith("data: ")) continue;
      const data = block.slice("data: ".length);
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

/** Follows the end of the conversation, unless the reader has scrolled up. */
function followEnd(change) {
  const atEnd = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
  change();
  if (atEnd) talk.scrollTop = talk.scrollHeight;
}

function userView(turn) {
  const article = element("article", "user");
  article.append(element("p", "plain", turn.content));
  talk.append(article);
  return article;
}

/** Where an answer is shown: its reasoning, its text, a bar for each round, its figures. */
function answerView(
  turn = { role: "assistant", content: "", reasoning: "", pieces: [], stats: "" },
) {
  const article = element("article", "assistant");
  const thought = element("details", "thought");
  const thoughtText = element("p", "plain");
  thought.append(element("summary", "", "Reasoning"), thoughtText);
  thought.open = true;
  const said = element("div", "said");
  const rounds = element("div", "rounds");
  rounds.setAttribute("role", "img");
  const stats = element("p", "stats", turn.stats);
  const actions = element("p", "actions");
  actions.append(button("Copy", (made) => copy(turn.content, made)));
  article.append(thought, said, rounds, stats, actions);
  talk.append(article);
  /** Shades of tokens whose text has not arrived. */
  const shades = [];
  let count = 0;
  let cut = false;
  let drawing = 0;

  function draw() {
    cancelAnimationFrame(drawing);
    drawing = 0;
    followEnd(() => {
      thought.hidden = turn.reasoning === "";
      thoughtText.textContent = turn.reasoning;
      said.replaceChildren(...markdown(turn.content));
      shadeText(said, turn);
      // The first round is the prompt's own token.
      rounds.hidden = count < 2;
      rounds.setAttribute("aria-label", `${count - 1} rounds: tokens accepted of those drafted`);
    });
  }

  draw();
  return {
    turn,
    article,
    actions,
    draw,
    perSecond: 0,
    add({ delta, logprobs, rounds: made = [], finish_reason: reason }) {
      cut ||= reason === "length";
      for (const round of made) {
        shades.push(...shadesOf(round));
        if (count++ > 0) rounds.append(bar(round));
      }
      const tokens = (logprobs?.content ?? []).map(({ token }) => token);
      const own = shades.splice(0, tokens.length);
      turn.reasoning += delta.reasoning_content ?? "";
      if (delta.content) {
        turn.content += delta.content;
        // A character that consists of several tokens is shown when its last token has arrived.
        if (tokens.join("") === delta.content) {
          turn.pieces.push(...tokens.map((token, i) => [token, own[i] ?? 0]));
        } else turn.pieces.push([delta.content, own.at(-1) ?? 0]);
      }
      drawing ||= requestAnimationFrame(draw);
    },
    end(timings) {
      this.perSecond = timings.predicted_per_second;
      const { predicted_n: tokens, draft_n: drafted, draft_n_accepted: accepted } = timings;
      const parts = [`${tokens} tokens`, `${this.perSecond.toFixed(1)} tokens/s`];
      if (drafted > 0) {
        const passes = Math.max(1, count - 1);
        parts.push(
          `${((tokens - 1) / passes).toFixed(2)} tokens a round`,
          `${(accepted / drafted * 100).toFixed(0)} % of drafts accepted`,
          `${passes} forward passes instead of ${tokens - 1}`,
        );
      }
      if (cut) {
        const most = numberOf("tokens");
        parts.push(
          most !== undefined && tokens >= most
            ? `cut at ${most} tokens: raise "Most tokens" and regenerate`
            : "cut: the context is full",
        );
        stats.classList.add("cut");
      }
      this.note(parts.join(", "));
    },
    /** Adds to the line of figures, which is kept with the answer. */
    note(line) {
      turn.stats = turn.stats === "" ? line : `${turn.stats}, ${line}`;
      followEnd(() => stats.textContent = turn.stats);
      draw();
    },
    stop() {
      stats.classList.add("cut");
      this.note("stopped");
    },
  };
}

/** Shades of a round's tokens: drafts by their position, from 1; 0 is the target's own. */
function shadesOf({ tokens, accepted }) {
  return Array.from({ length: tokens }, (_, i) => i < accepted ? Math.min(i + 1, 5) : 0);
}

/** A bar as high as the round's drafts, filled as far as they were accepted. */
function bar({ accepted, drafted }) {
  const made = element("span", "round");
  made.style.height = `${Math.min(12, drafted + 1) * 6}px`;
  made.title = `${accepted} of ${drafted} drafts accepted`;
  const filled = element("i");
  filled.style.height = `${(accepted + 1) / (drafted + 1) * 100}%`;
  made.append(filled);
  return made;
}

/**
 * The elements of a Markdown text. They are made of the lexer's tokens and never of HTML, so nothing
 * that a model writes becomes markup of its own choice. The lexer is recursive: a text whose nesting (thousands of
 * `>`) overflows its stack is shown as it is.
 */
function markdown(source) {
  try {
    return lexer(source, { gfm: true, breaks: true }).flatMap(block);
  } catch {
    return [element("p", "plain", source)];
  }
}

function withAll(name, children, className = "") {
  const made = element(name, className);
  made.append(...children);
  return made;
}

function block(token) {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading":
      return [withAll(`h${Math.min(6, token.depth + 1)}`, inline(token.tokens))];
    case "paragraph":
      return [withAll("p", inline(token.tokens))];
    case "blockquote":
      return [withAll("blockquote", token.tokens.flatMap(block))];
    case "code": {
      const pre = element("pre");
      pre.append(element("code", "", token.text));
      return [withAll("div", [button("Copy", (made) => copy(token.text, made)), pre], "code")];
    }
    case "list": {
      const list = withAll(token.ordered ? "ol" : "ul", token.items.map(item));
      if (token.ordered && token.start !== 1) list.start = token.start;
      return [list];
    }
    case "table": {
      const row = (cells, name) =>
        withAll("tr", cells.map(({ tokens }) => withAll(name, inline(tokens))));
      const rows = token.rows.map((cells) => row(cells, "td"));
      return [withAll("div", [withAll("table", [row(token.header, "th"), ...rows])], "table")];
    }
    case "hr":
      return [element("hr")];
    case "text":
      return inline(token.tokens ?? [token]);
    default:
      return [element("p", "plain", token.raw)];
  }
}

function item({ tokens, task, checked }) {
  const children = tokens.filter(({ type }) => type !== "checkbox").flatMap(block);
  return withAll("li", task ? [checked ? "☑ " : "☐ ", ...children] : children);
}

function inline(tokens) {
  return tokens.flatMap((token) => {
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        return [withAll(token.type, inline(token.tokens))];
      case "codespan":
        return [element("code", "", token.text)];
      case "br":
        return [element("br")];
      case "link":
        return [link(token)];
      case "escape":
        return [token.text];
      case "text":
        return token.tokens ? inline(token.tokens) : [unescaped(token.text)];
      default:
        return [token.raw];
    }
  });
}

/** Links open elsewhere, and only those that a browser fetches. */
function link({ href, tokens }) {
  if (!/^(https?|mailto):/i.test(href)) return withAll("span", inline(tokens));
  const made = withAll("a", inline(tokens));
  made.href = href;
  made.target = "_blank";
  made.rel = "noopener noreferrer";
  return made;
}

/** A character reference's character, read by the parser of a document that runs nothing. */
function unescaped(source) {
  if (!source.includes("&")) return source;
  const reference = /&(#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});/gi;
  return source.replace(
    reference,
    (found) => new DOMParser().parseFromString(found, "text/html").body.textContent ?? found,
  );
}

/** Most characters of the source between two that are shown side by side: an indentation or a reference. */
const MAX_HIDDEN = 40;

/**
 * Marks the characters that drafts spelled. A text that is shown mostly is a part of the source. Where it is not
 * (`&lt;` is shown as `<`, a list's code without its indentation), each character is the next one like it.
 */
function shadeText(root, { content, pieces }) {
  if (!byId("shade").checked) return;
  const shades = new Uint8Array(content.length);
  let end = 0;
  for (const [piece, shade] of pieces) shades.fill(shade, end, end += piece.length);
  const walker = document.createTreeWalker(
    root,
    NodeFilter.SHOW_TEXT,
    (node) =>
      node.parentElement?.tagName === "BUTTON"
        ? NodeFilter.FILTER_REJECT
        : NodeFilter.FILTER_ACCEPT,
  );
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  let at = 0;
  for (const node of nodes) {
    const spans = [];
    at = Math.max(at, content.indexOf(node.data, at));
    for (const letter of node.data.match(/[\s\S]/g) ?? []) {
      const found = content.slice(at, at + MAX_HIDDEN).indexOf(letter);
      const shade = found < 0 ? 0 : shades[at + found];
      at += found + 1;
      if (spans.at(-1)?.shade === shade) spans.at(-1).text += letter;
      else spans.push({ shade, text: letter });
    }
    node.replaceWith(
      ...spans.map((
        { shade, text },
      ) => (shade === 0 ? text : element("span", `d d${shade}`, text))),
    );
  }
}

/** Copies a text and says so on the button. Without https the clipboard is reached by a selection. */
async function copy(content, made) {
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    const area = element("textarea", "hidden", content);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  made.textContent = "Copied";
  setTimeout(() => made.textContent = "Copy", 1500);
}

/** Shows the current conversation from its turns. */
function showConversation() {
  talk.replaceChildren();
  byId("system").value = current.system;
  for (const turn of current.turns) turn.role === "user" ? userView(turn) : answerView(turn);
  offerRegenerate();
  listConversations();
  talk.scrollTop = talk.scrollHeight;
}

/** Only the last answer can be regenerated: the earlier ones are part of its prompt. */
function offerRegenerate() {
  for (const made of document.querySelectorAll(".regenerate")) made.remove();
  const last = [...document.querySelectorAll("article.assistant .actions")].at(-1);
  if (last === undefined || current.turns.at(-1)?.role !== "assistant") return;
  const made = button("Regenerate", regenerate);
  made.classList.add("regenerate");
  last.append(made);
}

/** The next seed, so that a temperature above 0 gives another answer. */
function regenerate() {
  if (running || !byId("form").reportValidity()) return;
  if (numberOf("temperature") !== 0 && numberOf("seed") !== undefined) {
    byId("seed").value = (numberOf("seed") + 1) % 2 ** 32;
  }
  const earlier = current.turns.pop();
  showConversation();
  answer(earlier);
}

function say() {
  const content = text.value.trim();
  if (content === "" || running || !byId("form").reportValidity()) return;
  text.value = "";
  current.system = byId("system").value;
  current.turns.push({ role: "user", content });
  keepConversations();
  userView(current.turns.at(-1));
  talk.scrollTop = talk.scrollHeight;
  answer();
}

/** Answers the last message of the current conversation. @param earlier the answer that this one replaces. */
async function answer(earlier) {
  notify("");
  const controller = new AbortController();
  const { signal } = controller;
  running = { controller, view: answerView() };
  talk.scrollTop = talk.scrollHeight;
  send.textContent = "Stop";
  const { turns } = current;
  const first = running.view;
  try {
    await stream({ drafts: true, view: first, signal });
    turns.push(first.turn);
    if (byId("plain").checked) await compare(first, signal);
  } catch (error) {
    failed(error, { turns, first, earlier });
  }
  running = undefined;
  send.textContent = "Send";
  offerRegenerate();
  keepConversations();
}

/** The same answer without drafts: how fast it is, and whether it is the same. */
async function compare(drafted, signal) {
  const { turns } = current;
  const plain = answerView();
  running.view = plain;
  // It answers what the first one answered.
  const [said] = turns.splice(-1);
  try {
    await stream({ drafts: false, view: plain, signal });
  } finally {
    turns.push(said);
  }
  const same = plain.turn.content === drafted.turn.content ? "the same text" : "ANOTHER TEXT";
  const times = (drafted.perSecond / plain.perSecond).toFixed(2);
  plain.note(`without drafts: ${same}; with them ${times} times as fast`);
}

/** An answer was stopped, refused or broken off: what is there is kept, and so is what was typed. */
function failed(error, { turns, first, earlier }) {
  const { view, controller } = running;
  const stopped = controller.signal.aborted;
  if (view.turn.content !== "" || view.turn.reasoning !== "") {
    if (stopped) view.stop();
    else view.note("broken off");
    if (view === first) turns.push(view.turn);
  } else {
    view.article.remove();
    if (view === first) withdraw(turns, earlier);
  }
  if (!stopped) notify(...noticeOf(error));
}

/**
 * Nothing was answered: the earlier answer stays, and a message without one goes back to where it was typed, or waits
 * for that in a conversation that is not shown any more.
 */
function withdraw(turns, earlier) {
  if (earlier) turns.push(earlier);
  if (turns !== current.turns) return;
  retype();
  showConversation();
}

/** Puts a message at the conversation's end that has no answer back to where it was typed. */
function retype() {
  const { turns } = current;
  if (turns.at(-1)?.role !== "user") return;
  text.value = [turns.pop().content, text.value].filter(Boolean).join("\n\n");
}

function openConversation(next) {
  running?.controller.abort();
  current = next;
  retype();
  notify("");
  showConversation();
}

/** The message for a refusal, and the buttons that help. */
function noticeOf(error) {
  if (error.status === 401) {
    byId("keyed").hidden = false;
    key.focus();
    return ["The server asks for a key: write it below and send again."];
  }
  if (error.type === "exceed_context_size_error") {
    const shorter = button("Drop the oldest turn and send", dropOldest);
    const fresh = button("New conversation", () => {
      const typed = text.value;
      startNew();
      text.value = typed;
    });
    const message = current.turns.length > 0
      ? "The conversation does not fit into the model's context any more."
      : "The message does not fit into the model's context: shorten it.";
    return current.turns.length > 0 ? [message, shorter, fresh] : [message];
  }
  if (error instanceof Refusal) return [error.message];
  return [`The server does not answer (${error.message}).`];
}

function dropOldest() {
  const next = current.turns.findIndex(({ role }, i) => i > 0 && role === "user");
  current.turns.splice(0, next < 0 ? current.turns.length : next);
  showConversation();
  notify("");
  say();
}

function startNew() {
  openConversation({ ...newConversation(), system: current.system });
  text.focus();
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) running.controller.abort();
  else say();
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    say();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.controller.abort();
});
byId("new").addEventListener("click", startNew);
byId("delete").addEventListener("click", () => {
  conversations = conversations.filter(({ id }) => id !== current.id);
  openConversation(conversations[0] ?? newConversation());
  keepConversations();
});
byId("conversations").addEventListener("change", ({ target }) => {
  openConversation(conversations.find(({ id }) => id === Number(target.value)) ?? current);
});
byId("system").addEventListener("change", ({ target }) => {
  current.system = target.value;
  keepConversations();
});
byId("shade").addEventListener("change", () => {
  if (!running) showConversation();
});
key.addEventListener("change", () => {
  store("key", key.value, "sessionStorage");
  showModel();
});
// Another tab has kept its conversations: without them, the next write of this one would remove them.
addEventListener("storage", ({ key }) => {
  if (key !== STORE) return;
  conversations = readConversations();
  const shown = conversations.findIndex(({ id }) => id === current.id);
  if (running && shown >= 0) conversations[shown] = current;
  else if (shown >= 0) {
    current = conversations[shown];
    showConversation();
  } else listConversations();
});
for (const id of SETTINGS) {
  byId(id).value = stored(`eyrie.${id}`) ?? byId(id).value;
  byId(id).addEventListener("change", ({ target }) => store(`eyrie.${id}`, target.value));
}
key.value = stored("key", "sessionStorage") ?? "";
openConversation(current);
showModel();
