import type { Route } from "./service/route.ts";
import { ANTHROPIC_ROUTES } from "./anthropic/messages.ts";
import { OLLAMA_ROUTES } from "./ollama/ollama.ts";
import { CHAT_ROUTE } from "./openai/chat.ts";
import { COMPLETION_ROUTE } from "./openai/completions.ts";
import { MODEL_ROUTES } from "./openai/models.ts";
import { PAGE_ROUTES } from "./page/page.ts";
import { RESPONSES_ROUTE } from "./responses/responses.ts";
import { HEALTH_ROUTE } from "./status/health.ts";
import { STATUS_ROUTES } from "./status/server_info.ts";
import { TOKEN_ROUTES } from "./status/tokenize.ts";

/** Every route except GET /openapi.json, which describes them. */
export const ROUTES: readonly Route[] = [
  CHAT_ROUTE,
  COMPLETION_ROUTE,
  RESPONSES_ROUTE,
  ...MODEL_ROUTES,
  ...ANTHROPIC_ROUTES,
  ...OLLAMA_ROUTES,
  ...PAGE_ROUTES,
  HEALTH_ROUTE,
  ...STATUS_ROUTES,
  ...TOKEN_ROUTES,
];
