// How times, money and sizes are written. All times are shown in one zone, that of the account.

let zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Sets the zone in which all times are shown. */
export function showTimesIn(timezone) {
  if (timezone === zone) return;
  try {
    Intl.DateTimeFormat("en", { timeZone: timezone });
    zone = timezone;
    formats.clear();
  } catch {
    // A zone that this browser does not know. Its own is better than none.
  }
}

export function shownZone() {
  return zone;
}

const formats = new Map();

function formatted(name, options, date) {
  if (!formats.has(name)) formats.set(name, new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...options }));
  return formats.get(name).format(date);
}

const asDate = (at) => (at instanceof Date ? at : new Date(at));

/** `09:00` */
export const clock = (at) => formatted("clock", { hour: "2-digit", minute: "2-digit" }, asDate(at));
/** `Monday` */
export const weekday = (at) => formatted("weekday", { weekday: "long" }, asDate(at));
export const weekdayShort = (at) => formatted("weekdayShort", { weekday: "short" }, asDate(at));
/** `23 Nov` */
export const dayMonth = (at) => formatted("dayMonth", { day: "numeric", month: "short" }, asDate(at));
/** `23 Nov 2026` */
export const dayMonthYear = (at) => formatted("dayMonthYear", { day: "numeric", month: "short", year: "numeric" }, asDate(at));
/** `Sunday, 22 November` */
export const longDay = (at) => formatted("longDay", { weekday: "long", day: "numeric", month: "long" }, asDate(at)).replace(/^(\w+) /, "$1, ");
export const monthName = (at) => formatted("monthName", { month: "long" }, asDate(at));
/** `CET` */
export const zoneName = (at) =>
  new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeZoneName: "short" }).formatToParts(asDate(at)).find((part) => part.type === "timeZoneName").value;
/** `Sunday, 22 November 2026, 13:00:00` */
export const wholeTime = (at) =>
  formatted("whole", { weekday: "long", day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" }, asDate(at));
/** `2026-11-22`, the date in the shown zone. */
export const isoDate = (at) => formatted("iso", { year: "numeric", month: "2-digit", day: "2-digit" }, asDate(at)).split("/").reverse().join("-");

/** A date such as `2026-11-22` as an instant, for formats in UTC. */
export const atNoon = (date) => new Date(`${date}T12:00:00Z`);
/** Parts of a date. A date has no zone. */
export const dateIn = (date, options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options }).format(atNoon(date));
/** `Mon 9 Nov` of a date. */
export const dateWords = (date) => dateIn(date, { weekday: "short", day: "numeric", month: "short" }).replace(",", "");

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `in 2 h 46 min`, `3 min ago`, `now` */
export function relative(at, now = Date.now()) {
  const difference = asDate(at).getTime() - now;
  const size = Math.abs(difference);
  if (size < 45_000) return "now";
  const text = duration(size);
  return difference > 0 ? `in ${text}` : `${text} ago`;
}

/** `41 s`, `2 h 46 min`, `3 days` */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 90_000) return `${Math.round(ms / 1000)} s`;
  const minutes = Math.round(ms / MINUTE);
  if (minutes < 60) return `${minutes} min`;
  if (ms < DAY) return minutes % 60 === 0 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const days = Math.round(ms / DAY);
  return days === 1 ? "1 day" : `${days} days`;
}

/** `today 13:00`, `Mon 09:00`, `23 Nov 09:00`: the shortest text that cannot be mistaken. */
export function moment(at, now = Date.now()) {
  const date = asDate(at);
  const days = Math.round((Date.parse(isoDate(date)) - Date.parse(isoDate(now))) / DAY);
  if (days === 0) return `today ${clock(date)}`;
  if (days === 1) return `tomorrow ${clock(date)}`;
  if (days === -1) return `yesterday ${clock(date)}`;
  if (Math.abs(days) < 6) return `${weekdayShort(date)} ${clock(date)}`;
  return `${Math.abs(days) < 300 ? dayMonth(date) : dayMonthYear(date)} ${clock(date)}`;
}

/** `$1.41`; small amounts keep as many digits as they need: `$0.0042`. */
export function money(micros) {
  const dollars = micros / 1_000_000;
  if (dollars === 0) return "$0";
  const size = Math.abs(dollars);
  const digits = size >= 0.1 ? 2 : size >= 0.01 ? 3 : 4;
  if (size < 0.0001) return dollars < 0 ? "-$0.0001" : "under $0.0001";
  return `${dollars < 0 ? "-" : ""}$${size.toFixed(digits)}`;
}

export function bytes(count) {
  if (count < 1000) return `${count} bytes`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)} KB`;
  if (count < 1_000_000_000) return `${(count / 1_000_000).toFixed(count < 10_000_000 ? 1 : 0)} MB`;
  return `${(count / 1_000_000_000).toFixed(count < 10_000_000_000 ? 1 : 0)} GB`;
}

const number = new Intl.NumberFormat("en-GB");

/** `1,255` */
export const figure = (count) => number.format(count);

/** `1 run`, `3 runs` */
export const counted = (count, one, many = `${one}s`) => `${figure(count)} ${count === 1 ? one : many}`;

/** The first 8 characters of a hash, in two groups. */
export const shortHash = (hash) => `${hash.slice(0, 4)} ${hash.slice(4, 8)}`;

/** `a, b and c` */
export function listed(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** A word with its first letter in upper case. */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** `needs_approval` as `needs approval`. */
export const spaced = (name) => name.replaceAll("_", " ");

/** The lines of a text, without the empty ones. */
export const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

const HELPERS = {
  liquid_specialist: "Specialist for Liquid",
  css_specialist: "Specialist for CSS",
  javascript_specialist: "Specialist for JavaScript",
  json_specialist: "Specialist for JSON",
  reviewer: "Review",
  second_opinion: "Second opinion",
  worker: "Look-up",
};

/** The words for a helper of a turn. */
export const helperName = (role) => HELPERS[role] ?? capital(spaced(role));
