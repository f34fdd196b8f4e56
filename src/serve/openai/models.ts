import { maxRequestTokens } from "../answers/limits.ts";
import { get, type Route } from "../service/route.ts";
import { modelNamed, modelNames, readyOf, type Service } from "../service/service.ts";

export const MODEL_ROUTES: readonly Route[] = [
  get(
    {
      path: "/v1/models",
      summary: "The model that is served, by each of its names",
      tag: "OpenAI",
    },
    ({ service }) => {
      const ready = readyOf(service);
      const data = modelNames(ready, service).map((name) => modelOf(service, name));
      return Response.json({ object: "list", data });
    },
  ),
  get(
    // A model's name may have slashes.
    { path: "/v1/models/:id{.+}", summary: "What is known of a model", tag: "OpenAI" },
    ({ service, params }) => {
      const { model } = modelNamed(service, params["id"]);
      return Response.json(modelOf(service, model));
    },
  ),
];

function modelOf(service: Service, name: string): unknown {
  const { engine } = readyOf(service);
  return {
    id: name,
    object: "model",
    created: Math.floor(service.started.getTime() / 1000),
    owned_by: "eyrie",
    max_model_len: maxRequestTokens(engine.info),
    draft: engine.info.draftName ?? null,
  };
}
