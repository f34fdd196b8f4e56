import { createHash } from "node:crypto";
import { get, type Route } from "../service/route.ts";
import css from "./page.css" with { type: "text" };
import html from "./page.html" with { type: "text" };
import js from "./page.js" with { type: "text" };

/** GET /: a page to talk to the model. It is one file and asks nobody but this server. */
export const PAGE_ROUTE: Route = get(
  { path: "/", summary: "A page to talk to the model", tag: "Page", open: true },
  () => new Response(PAGE, { headers: HEADERS }),
);

const PAGE = html
  .replace("<!-- style -->", () => `<style>${css}</style>`)
  .replace("<!-- script -->", () => `<script>${js}</script>`);

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": [
    "default-src 'none'",
    `style-src '${hashOf(css)}'`,
    `script-src '${hashOf(js)}'`,
    "connect-src 'self'",
    "img-src data:",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "referrer-policy": "no-referrer",
};

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
