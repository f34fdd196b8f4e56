import assert from "node:assert/strict";
import puppeteer, { type Page } from "npm:puppeteer-core@25.16.0";
import { generated } from "./cli_lines.ts";
import { serve } from "./server.ts";

/** Debian's. */
const CHROMIUM = "/usr/bin/chromium";
const PROMPT = "Count from 3 to 20.";

async function hasChromium(): Promise<boolean> {
  return await Deno.stat(CHROMIUM).then(() => true, () => false);
}

/** Texts of the elements that fit a selector. */
function texts(page: Page, selector: string): Promise<string[]> {
  return page.$$eval(selector, (found) => found.map((each) => each.textContent ?? ""));
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
  // The browser's process and its sockets outlive its last message by a little.
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
        (found) => found.map((span) => [span.className, span.textContent] as const),
      );
      const kinds = new Map<string, number>();
      for (const [kind] of spans) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      const count = (kind: string) => kinds.get(kind) ?? 0;
      const { usage } = await server.json("/v1/chat/completions", {
        ...{ messages, temperature: 0, max_tokens: 200 },
      });
      const { accepted_prediction_tokens: accepted } = usage.completion_tokens_details;
      assert.ok(count("d d1") >= count("d d2") && count("d d2") >= count("d d3"));
      // The end-of-turn token has no text; it may have been a draft.
      const shaded = count("d d1") + count("d d2") + count("d d3");
      assert.ok(shaded === accepted || shaded === accepted - 1, `${shaded} of ${accepted}`);
      const rounds = await page.$$eval(".round", (found) => found.length);
      assert.ok(rounds >= count("d d1"));
      assert.match((await texts(page, ".stats"))[0] ?? "", /tokens\/s, [\d.]+ tokens a round/);
    });

    await t.step("beside plain decoding: the same text", async () => {
      await page.click("#clear");
      await page.click("#plain");
      await page.type("#text", PROMPT);
      await page.keyboard.press("Enter");
      assert.deepEqual(await said(page, 2), [expected.text, expected.text]);
      assert.match((await texts(page, ".stats"))[1] ?? "", /the same text; with them [\d.]+ times/);
      await page.click("#plain");
    });

    await t.step("Escape stops, and the server is free", async () => {
      await page.$eval("#tokens", (input) => (input as unknown as { value: string }).value = "900");
      await page.$eval(
        "#temperature",
        (input) => (input as unknown as { value: string }).value = "2",
      );
      await page.type("#text", "Tell me a story about a fox.");
      await page.keyboard.press("Enter");
      await page.waitForFunction(
        'document.querySelectorAll("article.assistant")[2]?.querySelectorAll(".said span").length > 2',
      );
      await page.keyboard.press("Escape");
      await said(page, 3);
      while (server.server.service.table.live.size > 0) await new Promise((r) => setTimeout(r, 2));
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
