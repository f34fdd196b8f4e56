const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;
const DAYS = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
] as const;

/**
 * Python's `strftime` in the C locale (English names on every machine: a prompt must not depend on
 * the language of the desktop), local time. Knows %Y %y %m %d %e %b %B %a %A %j %H %I %M %S %p %%
 * and the `-` flag that drops padding; anything else is left as it stands.
 */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([A-Za-z%])/g, (directive, flag: string, letter: string) => {
    const text = part(date, letter);
    if (text === undefined) return directive;
    return flag === "-" ? text.replace(/^[0 ]+(?=.)/, "") : text;
  });
}

function part(date: Date, letter: string): string | undefined {
  const two = (value: number, pad: string = "0") => String(value).padStart(2, pad);
  const month = MONTHS[date.getMonth()] ?? "";
  const day = DAYS[date.getDay()] ?? "";
  const parts: Record<string, string> = {
    Y: String(date.getFullYear()),
    y: two(date.getFullYear() % 100),
    m: two(date.getMonth() + 1),
    d: two(date.getDate()),
    e: two(date.getDate(), " "),
    B: month,
    b: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    j: String(dayOfYear(date)).padStart(3, "0"),
    H: two(date.getHours()),
    I: two((date.getHours() + 11) % 12 + 1),
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    p: date.getHours() < 12 ? "AM" : "PM",
    "%": "%",
  };
  return parts[letter];
}

/** 1 = 1 January. In UTC, where each day has 24 hours. */
function dayOfYear(date: Date): number {
  const year = date.getFullYear();
  const days = Date.UTC(year, date.getMonth(), date.getDate()) - Date.UTC(year, 0, 0);
  return days / 86_400_000;
}
