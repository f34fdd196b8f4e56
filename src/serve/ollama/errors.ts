import type { ApiError } from "../http/errors.ts";

/** ollama's errors are a text. */
export function ollamaError({ message }: ApiError): { readonly error: string } {
  return { error: message };
}
