/** The page's script: plain JavaScript, which the browser gets as it is. */

const byId = (id) => document.getElementById(id);
const talk = byId("talk");
const text = byId("text");
const send = byId("send");
const key = byId("key");

let messages = [];
let running;

key.value = sessionStorage.getItem("key") ?? "";

function ask(path, init = {}) {
  const headers = key.value === "" ? {} : { authorization: `Bearer ${key.value}` };
  return fetch(path, { ...init, headers: { "content-type": "application/json", ...headers } });
}

function element(name, className = "", content = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = content;
  return made;
}

/** Tells the model and how it drafts, or what the server waits for; asks again until it is there. */
async function showModel() {
  try {
    const response = await ask("/server_info");
    byId("keyed").hidden = response.status !== 401;
    const info = await response.json();
    byId("model").textContent = response.ok ? modelText(info) : info.error.message;
    if (response.status !== 503) return;
  } catch {
    byId("model").textContent = "the server does not answer";
  }
  setTimeout(showModel, 500);
}

function modelText(info) {
  const draft = info.speculative_algorithm
    ? `${info.speculative_algorithm}, ${
      info.speculative_adaptive ? "adaptive" : `${info.speculative_num_steps} steps`
    }`
    : "no drafts";
  return `${info.served_model_name}, ${draft}, ${info.device.adapter}`;
}

/** Asks for an answer and shows it as it comes. */
async function answer({ drafts, into }) {
  const response = await ask("/v1/chat/completions", {
    method: "POST",
    signal: running?.signal,
    body: JSON.stringify({
      messages,
      temperature: numberOf("temperature"),
      seed: numberOf("seed"),
      max_tokens: numberOf("tokens"),
      ...{ stream: true, logprobs: true, return_rounds: true },
      ...drafts ? {} : { num_steps: 0 },
    }),
  });
  if (!response.ok || response.body === null) {
    const { error } = await response.json();
    throw new Error(error.message);
  }
  for await (const event of eventsOf(response.body)) {
    if (event.error) throw new Error(event.error.message);
    for (const choice of event.choices) into.add(choice);
    if (event.timings) into.end(event.timings);
  }
}

function numberOf(id) {
  return Number(byId(id).value);
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
      const data = block.replace(/^data: /, "");
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

/** Where an answer is shown: its text, a bar for each round, its numbers. */
function answerView() {
  const article = element("article", "assistant");
  const thought = element("p", "thought");
  const said = element("p", "said");
  const rounds = element("div", "rounds");
  rounds.setAttribute("role", "img");
  const stats = element("p", "stats");
  thought.hidden = rounds.hidden = true;
  article.append(thought, said, rounds, stats);
  talk.append(article);
  const shades = [];
  let count = 0;
  let content = "";
  return {
    get content() {
      return content;
    },
    stats,
    perSecond: 0,
    add({ delta, logprobs, rounds: told = [] }) {
      for (const round of told) {
        shades.push(...shadesOf(round));
        if (count++ > 0) rounds.append(bar(round));
      }
      // The first is the prompt's own token.
      rounds.hidden = count < 2;
      rounds.setAttribute("aria-label", `${count - 1} rounds: tokens accepted of those drafted`);
      const tokens = (logprobs?.content ?? []).map(({ token }) => token);
      const own = shades.splice(0, tokens.length);
      if (delta.reasoning_content) {
        thought.hidden = false;
        thought.textContent += delta.reasoning_content;
      }
      if (!delta.content) return;
      content += delta.content;
      // Characters that several tokens make up are shown when the last one is there.
      const apart = tokens.join("") === delta.content;
      if (apart) tokens.forEach((token, i) => said.append(element("span", own[i] ?? "t", token)));
      else said.append(element("span", own.at(-1) ?? "t", delta.content));
      talk.scrollTop = talk.scrollHeight;
    },
    end(timings) {
      this.perSecond = timings.predicted_per_second;
      const { predicted_n: tokens, draft_n: drafted, draft_n_accepted: accepted } = timings;
      const parts = [`${tokens} tokens`, `${this.perSecond.toFixed(1)} tokens/s`];
      if (drafted > 0) {
        parts.push(
          `${((tokens - 1) / Math.max(1, count - 1)).toFixed(2)} tokens a round`,
          `${(accepted / drafted * 100).toFixed(0)} % of drafts accepted`,
        );
      }
      stats.textContent = parts.join(", ");
      talk.scrollTop = talk.scrollHeight;
    },
    fail(message) {
      stats.className = "stats error";
      stats.textContent = message;
    },
  };
}

/** Classes of a round's tokens: the drafts by their position, then the target's own. */
function shadesOf({ tokens, accepted }) {
  return Array.from(
    { length: tokens },
    (_, i) => i < accepted ? `d d${Math.min(i + 1, 5)}` : "t",
  );
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

async function say() {
  const content = text.value.trim();
  if (content === "" || running) return;
  text.value = "";
  messages.push({ role: "user", content });
  const own = element("article", "user");
  own.append(element("p", "said", content));
  talk.append(own);
  running = new AbortController();
  send.textContent = "Stop";
  const view = answerView();
  try {
    await answer({ drafts: true, into: view });
    if (byId("plain").checked) await compare(view);
    messages.push({ role: "assistant", content: view.content });
  } catch (error) {
    const stopped = running.signal.aborted;
    view.fail(stopped ? "stopped" : error.message);
    messages.push({ role: "assistant", content: view.content });
    if (view.content === "") messages.splice(-2);
  }
  running = undefined;
  send.textContent = "Send";
  showModel();
}

/** The same answer without drafts: how fast, and whether it is the same. */
async function compare(view) {
  const plain = answerView();
  await answer({ drafts: false, into: plain });
  const same = plain.content === view.content ? "the same text" : "ANOTHER TEXT";
  const times = (view.perSecond / plain.perSecond).toFixed(2);
  plain.stats.textContent += `, without drafts: ${same}; with them ${times} times as fast`;
  talk.scrollTop = talk.scrollHeight;
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) running.abort();
  else say();
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    say();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
});
byId("clear").addEventListener("click", () => {
  running?.abort();
  messages = [];
  talk.replaceChildren();
  text.focus();
});
key.addEventListener("change", () => {
  sessionStorage.setItem("key", key.value);
  showModel();
});
showModel();
