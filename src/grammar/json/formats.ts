/** Regular expressions of texts that have a format, as strict as RFC 3339, 4122, 1123, 3986 or stricter. */
const TIME = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+\\-]([01]\\d|2[0-3]):[0-5]\\d)";

/** Days that every such month has: 29 February is left out. */
const DATE = "\\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|" +
  "(0[13578]|1[02])-31)";

const BYTE = "(\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])";
const LABEL = "[a-z0-9]([a-z0-9\\-]{0,20}[a-z0-9])?";
const HOST = `${LABEL}(\\.${LABEL}){0,3}`;

export const FORMATS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  "date-time": `${DATE}T${TIME}`,
  uuid: "[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
  ipv4: `${BYTE}(\\.${BYTE}){3}`,
  hostname: HOST,
  email: `[A-Za-z0-9_+\\-]+(\\.[A-Za-z0-9_+\\-]+)*@${HOST}\\.[a-z]{2,10}`,
  uri: `https?://${HOST}(:[1-9]\\d{0,3})?(/[A-Za-z0-9_.~\\-]+)*/?`,
};
