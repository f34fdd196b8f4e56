import { get, type Route } from "../service/route.ts";
import { modelNamed, readyOf, type Service } from "../service/service.ts";

export const MODEL_ROUTES: readonly Route[] = [
  get(
    { path: "/v1/models", summary: "The model that is served", tag: "OpenAI" },
    ({ service }) => Response.json({ object: "list", data: [modelOf(service)] }),
  ),
  get(
    // A model's name may have slashes.
    { path: "/v1/models/:id{.+}", summary: "What is known of a model", tag: "OpenAI" },
    ({ service, params }) => {
      modelNamed(service, params["id"]);
      return Response.json(modelOf(service));
    },
  ),
];

function modelOf(service: Service): unknown {
  const { engine, model } = readyOf(service);
  return {
    id: model,
    object: "model",
    created: Math.floor(service.started.getTime() / 1000),
    owned_by: "eyrie",
    max_model_len: engine.contextLength,
    draft: engine.draftName ?? null,
  };
}
