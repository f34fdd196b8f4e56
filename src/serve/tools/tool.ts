/** A function that the model may call. */
export interface Tool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON schema of its arguments. */
  readonly parameters?: unknown;
}
