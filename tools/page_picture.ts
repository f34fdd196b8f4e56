/**
 * A picture of the server's page after an answer, by Debian's Chromium:
 *
 *     deno run -A --lock tests/deno.lock tools/page_picture.ts URL OUTPUT.png [light|dark] [WIDTH]
 */
import puppeteer from "npm:puppeteer-core@25.16.0";

const [url = "http://127.0.0.1:8000", output = "docs/server.png", scheme = "light", width = "900"] =
  Deno.args;
const browser = await puppeteer.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"],
});
const page = await browser.newPage();
await page.setViewport({ width: Number(width), height: 720 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
await page.goto(url);
await page.waitForFunction('!document.querySelector("#model").textContent.includes("…")');
await page.click("#settings summary");
await page.click("#plain");
await page.click("#settings summary");
for (const prompt of ["Tell me a story about a fox and a lantern.", "Count from 3 to 20."]) {
  await page.type("#text", prompt);
  await page.keyboard.press("Enter");
  await page.waitForFunction('document.querySelector("#send").textContent === "Stop"');
  await page.waitForFunction('document.querySelector("#send").textContent === "Send"');
}
await page.screenshot({ path: output as `${string}.png` });
await browser.close();
