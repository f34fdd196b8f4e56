/** Regular expressions of texts that have a format, as strict as RFC 3339, 4122, 4291, 1123, 3986 or stricter. */
const TIME = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+\\-]([01]\\d|2[0-3]):[0-5]\\d)";

/** Days that every such month has: 29 February is left out. */
const DATE = "\\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|" +
  "(0[13578]|1[02])-31)";

/** Each unit may be followed by the next smaller one alone. */
const MINUTES = "\\d{1,9}M(\\d{1,9}S)?";
const DURATION_TIME = `T(\\d{1,9}S|${MINUTES}|\\d{1,9}H(${MINUTES})?)`;
const MONTHS = "\\d{1,9}M(\\d{1,9}D)?";
const DURATION = `P(\\d{1,9}W|${DURATION_TIME}|` +
  `(\\d{1,9}D|${MONTHS}|\\d{1,9}Y(${MONTHS})?)(${DURATION_TIME})?)`;

/** Eight words, or fewer where :: stands for one or more of zeros. */
const WORD = "[0-9a-f]{1,4}";
const IPV6 = [
  `(${WORD}:){7}${WORD}`,
  `:((:${WORD}){1,7}|:)`,
  `(${WORD}:){1,7}:`,
  ...[1, 2, 3, 4, 5, 6].map((before) => `(${WORD}:){${before}}(:${WORD}){1,${7 - before}}`),
].join("|");

const BYTE = "(\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])";
const LABEL = "[a-z0-9]([a-z0-9\\-]{0,20}[a-z0-9])?";
const HOST = `${LABEL}(\\.${LABEL}){0,3}`;

export const FORMATS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  "date-time": `${DATE}T${TIME}`,
  duration: DURATION,
  uuid: "[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
  ipv4: `${BYTE}(\\.${BYTE}){3}`,
  ipv6: IPV6,
  hostname: HOST,
  email: `[A-Za-z0-9_+\\-]+(\\.[A-Za-z0-9_+\\-]+)*@${HOST}\\.[a-z]{2,10}`,
  uri: `https?://${HOST}(:[1-9]\\d{0,3})?(/[A-Za-z0-9_.~\\-]+)*/?`,
};
