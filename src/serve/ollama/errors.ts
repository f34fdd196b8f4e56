import type { ApiError } from "../http/errors.ts";

/** ollama's error object. */
export function ollamaError({ message }: ApiError): { readonly error: string } {
  return { error: message };
}
