import assert from "node:assert/strict";
import puppeteer, { type Page } from "npm:puppeteer-core@25.16.0";
import { generated } from "./cli_lines.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { serve, type TestServer } from "./server.ts";

/** Debian's Chromium. */
const CHROMIUM = "/usr/bin/chromium";
const PROMPT = "Count from 3 to 20.";

async function hasChromium(): Promise<boolean> {
  return await Deno.stat(CHROMIUM).then(() => true, () => false);
}

/** Texts of the elements that fit a selector. */
function texts(page: Page, selector: string): Promise<string[]> {
  return page.$$eval(selector, (found) => found.map((each) => each.textContent ?? ""));
}

/** Gives a field a value as if it had been typed. */
async function set(page: Page, selector: string, value: string): Promise<void> {
  await page.evaluate(
    `{ const field = document.querySelector(${JSON.stringify(selector)});
       field.value = ${JSON.stringify(value)};
       field.dispatchEvent(new Event("change", { bubbles: true })); }`,
  );
}

/** Whether an element is wholly within the window. */
async function inView(page: Page, selector: string): Promise<boolean> {
  return await page.evaluate(
    `{ const { top, bottom } = document.querySelector(${JSON.stringify(selector)})
         .getBoundingClientRect();
       top >= 0 && bottom <= innerHeight; }`,
  ) as boolean;
}

function engineOf({ server }: TestServer): Engine {
  const { phase } = server.service;
  if (phase.kind !== "ready") throw new Error(phase.kind);
  return phase.ready.engine;
}

async function said(page: Page, answers: number): Promise<string[]> {
  const done =
    `[...document.querySelectorAll(".stats")].filter((e) => e.textContent).length >= ${answers}` +
    ' && document.querySelector("#send").textContent === "Send"';
  await page.waitForFunction(done);
  return await texts(page, "article.assistant .said");
}

Deno.test({
  name: "the page, in headless Chromium",
  ignore: !await hasChromium(),
  // The browser's process and sockets live a little longer than its last message.
  sanitizeOps: false,
  sanitizeResources: false,
}, async (t) => {
  await using server = await serve();
  const messages = [{ role: "user", content: PROMPT }];
  const [expected] = await generated([{ messages, temperature: 0, max_tokens: 200 }]);
  const browser = await puppeteer.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 900, height: 900 });
    const asked: string[] = [];
    const faults: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (line) => line.type() === "error" && faults.push(line.text()));
    await page.goto(server.url);

    await t.step("an answer by keyboard alone: eyrie generate's text, shaded", async () => {
      await page.waitForFunction('document.querySelector("#model").textContent.includes("EAGLE3")');
      await page.keyboard.type(PROMPT);
      await page.keyboard.press("Enter");
      assert.deepEqual(await said(page, 1), [expected.text]);
      const spans = await page.$$eval(
        "article.assistant .said span",
        (found) => found.map((span) => span.className),
      );
      const count = (kind: string) => spans.filter((each) => each === kind).length;
      const { usage } = await server.json("/v1/chat/completions", {
        messages,
        temperature: 0,
        max_tokens: 200,
      });
      const { accepted_prediction_tokens: accepted } = usage.completion_tokens_details;
      assert.ok(count("d d1") >= count("d d2") && count("d d2") >= count("d d3"));
      // The end-of-turn token has no text; it may have been a draft.
      const shaded = count("d d1") + count("d d2") + count("d d3");
      assert.ok(shaded === accepted || shaded === accepted - 1, `${shaded} of ${accepted}`);
      const rounds = await page.$$eval(".round", (found) => found.length);
      assert.ok(rounds >= count("d d1"));
      assert.match(
        (await texts(page, ".stats"))[0] ?? "",
        /tokens\/s, [\d.]+ tokens a round, \d+ % of drafts accepted, \d+ forward passes instead of \d+$/,
      );
    });

    await t.step("a reload keeps the conversation, and its shades", async () => {
      const shown = () => page.$eval("#talk", (talk) => talk.textContent);
      const shades = () => page.$$eval(".said span", (found) => found.map((e) => e.className));
      const [before, shaded] = [await shown(), await shades()];
      await page.reload();
      await said(page, 1);
      assert.equal(await shown(), before);
      assert.deepEqual(await shades(), shaded);
      assert.deepEqual(await texts(page, "#conversations option"), [PROMPT]);
    });

    await t.step("regenerated without drafts too: the same text; copied", async () => {
      await page.click("#settings summary");
      await page.click("#plain");
      await page.click(".regenerate");
      assert.deepEqual(await said(page, 2), [expected.text, expected.text]);
      assert.match((await texts(page, ".stats"))[1] ?? "", /the same text; with them [\d.]+ times/);
      await page.click(".actions button");
      await page.waitForFunction(
        'document.querySelector(".actions button").textContent === "Copied"',
      );
    });

    await t.step("Escape in the answer without drafts marks that one", async () => {
      await page.click("#new");
      await page.type("#text", "Tell me a story about a fox and a lantern.");
      await page.keyboard.press("Enter");
      await page.waitForFunction(
        'document.querySelectorAll("article.assistant")[1]?.querySelector(".said").textContent.length > 2',
      );
      await page.keyboard.press("Escape");
      await said(page, 2);
      const lines = await texts(page, ".stats");
      assert.doesNotMatch(lines[0] ?? "", /stopped/);
      assert.match(lines[1] ?? "", /stopped/);
      while (server.server.service.table.live.size > 0) await new Promise((r) => setTimeout(r, 2));
      await page.click("#plain");
    });

    await t.step("an answer that was cut says so", async () => {
      await set(page, "#tokens", "4");
      await page.click("#new");
      await page.type("#text", PROMPT);
      await page.keyboard.press("Enter");
      await said(page, 1);
      assert.match((await texts(page, ".stats"))[0] ?? "", /cut at 4 tokens: raise "Most tokens"/);
      await set(page, "#tokens", "");
    });

    await t.step("a full context keeps what was typed and offers a way on", async () => {
      const { contextLength } = engineOf(server).info;
      // Each number is at least one token.
      const long = Array.from({ length: contextLength }, (_, i) => i % 10).join(" ");
      await set(page, "#text", long);
      await page.focus("#text");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#notice:not([hidden])");
      const [line] = await texts(page, "#notice span");
      assert.match(line ?? "", /does not fit into the model's context any more/);
      assert.equal(
        await page.$eval("#text", (e) => (e as unknown as { value: string }).value),
        long,
      );
      assert.ok(await inView(page, "#notice") && await inView(page, "#text"));
      await set(page, "#text", PROMPT);
      await page.click("#notice button");
      assert.deepEqual(await said(page, 1), [expected.text]);
      assert.equal(await page.$eval("#notice", (e) => e.textContent), "");
      // Chromium's own line about the refusal.
      assert.match(faults.splice(0).join("\n"), /^Failed to load resource.* status of 400 [^\n]*$/);
    });

    await t.step(
      "an answer that cannot be regenerated stays, and a message goes back to what is typed",
      async () => {
        const { service } = server.server;
        const typed = () => page.$eval("#text", (e) => (e as unknown as { value: string }).value);
        const before = await texts(page, "article");
        service.stopping = true;
        await page.click(".regenerate");
        await page.waitForSelector("#notice:not([hidden])");
        assert.deepEqual([await texts(page, "article"), await typed()], [before, ""]);
        await page.evaluate(
          `document.querySelector("#text").value = "first";
         document.querySelector("#form").requestSubmit();
         document.querySelector("#text").value = "second";`,
        );
        await page.waitForFunction('document.querySelector("#text").value !== "second"');
        assert.deepEqual([await texts(page, "article"), await typed()], [
          before,
          "first\n\nsecond",
        ]);
        service.stopping = false;
        await set(page, "#text", "");
        assert.match(
          faults.splice(0).join("\n"),
          /^(Failed to load resource.* status of 503 .*\n?){2}$/,
        );
      },
    );

    await t.step(
      '"New" before the first token keeps the question for whoever comes back',
      async () => {
        const engine = engineOf(server);
        const { encodePrompt } = engine;
        const gate = Promise.withResolvers<void>();
        engine.encodePrompt = async (...asked) => {
          await gate.promise;
          return await encodePrompt(...asked);
        };
        const typed = () => page.$eval("#text", (e) => (e as unknown as { value: string }).value);
        await page.click("#new");
        await page.type("#text", PROMPT);
        await page.keyboard.press("Enter");
        await page.waitForFunction('document.querySelector("#send").textContent === "Stop"');
        await page.click("#new");
        await page.waitForFunction('document.querySelector("#send").textContent === "Send"');
        assert.deepEqual([await texts(page, "article"), await typed()], [[], ""]);
        gate.resolve();
        engine.encodePrompt = encodePrompt;
        const [id = ""] = await page.$$eval(
          "#conversations option:not(:checked)",
          (found) => found.map((each) => (each as unknown as { value: string }).value),
        );
        await page.select("#conversations", id);
        assert.deepEqual([await texts(page, "article"), await typed()], [[], PROMPT]);
        await page.focus("#text");
        await page.keyboard.press("Enter");
        assert.deepEqual(await said(page, 1), [expected.text]);
        assert.equal(await typed(), "");
      },
    );

    await t.step("two tabs keep each other's conversations", async () => {
      const other = await browser.newPage();
      await other.goto(server.url);
      const both = [[page, "Count from 3 to 5."], [other, "Count from 3 to 6."]] as const;
      for (const [tab, prompt] of both) {
        await tab.bringToFront();
        await tab.click("#new");
        await tab.type("#text", prompt);
        await tab.keyboard.press("Enter");
        await said(tab, 1);
        const listed = `document.querySelector("#conversations").textContent.includes("${prompt}")`;
        await Promise.all([page.waitForFunction(listed), other.waitForFunction(listed)]);
      }
      await other.reload();
      await said(other, 1);
      const [first, second] = await texts(other, "#conversations option");
      assert.deepEqual([first, second], ["Count from 3 to 6.", "Count from 3 to 5."]);
      const value = await other.$eval(
        "#conversations",
        (e) => (e as unknown as { value: string }).value,
      );
      await page.bringToFront();
      await page.select("#conversations", value);
      await said(page, 1);
      await page.type("#text", "Count from 3 to 7.");
      await page.keyboard.press("Enter");
      await said(page, 2);
      assert.equal(
        (await said(other, 2)).length,
        2,
        "a conversation that both show goes on in both",
      );
      await other.close();
    });

    await t.step("without storage the page works", async () => {
      const page = await browser.newPage();
      page.on("pageerror", (error) => faults.push(String(error)));
      await page.evaluateOnNewDocument(`for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, name, { get() { throw new DOMException("", "SecurityError"); } });
      }`);
      await page.goto(server.url);
      await page.waitForFunction('document.querySelector("#model").textContent.includes("EAGLE3")');
      await page.close();
    });

    await t.step("Markdown is shown as elements, and never as a model's own HTML", async () => {
      const source = [
        "## Fox & <b>den</b>",
        "",
        "1. **bold** and `code`",
        "2. [safe](https://example.org) [not](javascript:alert(1))",
        "",
        "```js",
        "const a = '<i>';",
        "```",
        "",
        "| a | b |",
        "| - | - |",
        "| 1 | 2 |",
        "",
        "<img src=x onerror=alert(1)>",
      ].join("\n");
      const pieces: [text: string, shade: number][] = [];
      const turn = { role: "assistant", content: source, reasoning: "", pieces, stats: "-" };
      const kept = [{ id: 1, system: "", turns: [{ role: "user", content: "q" }, turn] }];
      const page = await browser.newPage();
      page.on("pageerror", (error) => faults.push(String(error)));
      await page.goto(server.url);
      await page.evaluate(
        `localStorage.setItem("eyrie.conversations", ${JSON.stringify(JSON.stringify(kept))})`,
      );
      await page.reload();
      await said(page, 1);
      const names = await page.$$eval(".said *", (found) => found.map((e) => e.localName));
      for (const name of ["h3", "ol", "strong", "code", "pre", "table", "a"]) {
        assert.ok(names.includes(name), name);
      }
      assert.ok(!names.includes("img") && !names.includes("b") && !names.includes("i"));
      assert.deepEqual(
        await page.$$eval(".said a", (found) => found.map((a) => a.getAttribute("href"))),
        [
          "https://example.org",
        ],
      );
      assert.equal((await texts(page, ".said pre"))[0], "const a = '<i>';");
      turn.content =
        "1 &lt; 2, [**so**](https://example.org/a/path/that/is/not/shown/but/long) it goes on: `<`";
      const from = turn.content.indexOf("so**");
      turn.pieces = [[turn.content.slice(0, from), 0], [turn.content.slice(from), 3]];
      await page.evaluate(
        `localStorage.setItem("eyrie.conversations", ${JSON.stringify(JSON.stringify(kept))})`,
      );
      await page.reload();
      await said(page, 1);
      assert.deepEqual(await texts(page, ".said"), ["1 < 2, so it goes on: <"]);
      assert.equal((await texts(page, ".said .d3")).join(""), "so it goes on: <");
      turn.content = ">".repeat(5000); // overflows the lexer's stack
      await page.evaluate(
        `localStorage.setItem("eyrie.conversations", ${JSON.stringify(JSON.stringify(kept))})`,
      );
      await page.reload();
      await said(page, 1);
      assert.deepEqual(await texts(page, ".said"), [turn.content]);
      await page.close();
    });

    await t.step("dark, light and as wide as a phone", async () => {
      const colours: string[] = [];
      for (const scheme of ["light", "dark"]) {
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        colours.push(
          await page.evaluate("getComputedStyle(document.body).backgroundColor") as string,
        );
      }
      assert.notEqual(colours[0], colours[1]);
      await page.setViewport({ width: 360, height: 700 });
      const wide = await page.evaluate("document.documentElement.scrollWidth");
      assert.equal(wide, 360);
    });

    assert.deepEqual(faults, []);
    assert.ok(
      asked.every((url) => url.startsWith(server.url) || url === "data:,"),
      asked.join("\n"),
    );
    const { headers } = await server.ask("/");
    assert.match(headers.get("content-security-policy") ?? "", /default-src 'none'/);
  } finally {
    await browser.close();
  }
});
