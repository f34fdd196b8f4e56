// Rows of the option table: what the output has to be. One of them at a time.

export const CONSTRAINT = {
  jsonSchema: {
    flag: "--json-schema",
    common: true,
    type: "text",
    help:
      "the output is JSON that is valid for this schema: a file, the schema itself, or the word object for any JSON object",
    absent: "any text",
    example: "--json-schema invoice.schema.json",
  },
  grammar: {
    flag: "--grammar",
    type: "file",
    help: "the output matches the rule root of this grammar in EBNF",
    absent: "any text",
    example: "--grammar moves.ebnf",
  },
  regex: {
    flag: "--regex",
    type: "text",
    help: "the whole output matches this regular expression",
    absent: "any text",
    example: "--regex '\\d{4}-\\d{2}-\\d{2}'",
  },
} as const;
