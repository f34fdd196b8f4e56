import { createHash } from "node:crypto";
import marked from "marked" with { type: "text" };
import { get, type Route } from "../service/route.ts";
import css from "./page.css" with { type: "text" };
import html from "./page.html" with { type: "text" };
import js from "./page.js" with { type: "text" };

/** GET /: a page to talk to the model, and the parser of Markdown that it imports from this server. */
export const PAGE_ROUTES: readonly Route[] = [
  get(
    { path: "/", summary: "A page to talk to the model", tag: "Page", open: true },
    () => new Response(PAGE, { headers: HEADERS }),
  ),
  get(
    { path: "/marked.js", summary: "The page's parser of Markdown", tag: "Page", open: true },
    () => new Response(MARKED, { headers: { "content-type": "text/javascript", ...NO_SNIFFING } }),
  ),
];

const PAGE = html
  .replace("<!-- style -->", () => `<style>${css}</style>`)
  .replace("<!-- script -->", () => `<script type="module">${js}</script>`);

/** The package as published, a module. */
const MARKED = String(marked);

const NO_SNIFFING = { "x-content-type-options": "nosniff" };

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": [
    "default-src 'none'",
    `style-src '${hashOf(css)}'`,
    `script-src 'self' '${hashOf(js)}'`,
    "connect-src 'self'",
    "img-src data:",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "referrer-policy": "no-referrer",
  ...NO_SNIFFING,
};

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
