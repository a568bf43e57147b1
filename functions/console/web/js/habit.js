// Habits, as several pages show them: how a day looks, today's check-in, streaks in words, and what is asked about a day.

import { del, get, orNull, post } from "./api.js";
import { atNoon, counted, dateIn, dateWords, listed } from "./format.js";
import { button, confirmation, dialog, dialogActs, draftOf, failureOf, field, press } from "./parts.js";
import { h } from "./view.js";

const HABIT_DAY_MS = 86_400_000;
const MOST_NOTE = 1000;

export const habitPath = (habit) => `/practices/${encodeURIComponent(habit.practice_id)}`;
export const habitHref = (habit) => `#/practices/${encodeURIComponent(habit.practice_id)}`;

/** The day that is so many days after a date. */
export const dateAfter = (date, days) => new Date(atNoon(date).getTime() + days * HABIT_DAY_MS).toISOString().slice(0, 10);

export const WEEK_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const WEEK_DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** 0 for a Monday, 6 for a Sunday. */
export const dayInWeek = (date) => (atNoon(date).getUTCDay() + 6) % 7;

/** How each kind of day looks, and what it is called. */
const HABIT_LAMPS = {
  done: ["lit", "done"],
  due: ["due", "due today"],
  missed: ["missed", "missed"],
  left: ["gone", "left out on purpose"],
  none: ["skip", "not due"],
  free: ["skip", "no check-in"],
};

/** The kind of a day. A habit of so many times a week may be done on any day, so no single day of it is missed. */
export function habitDay(habit, { date, due, done }) {
  if (done === true) return "done";
  if (done === false) return "left";
  if (date === habit.today.date && due) return habit.status === "active" ? "due" : "none";
  if (habit.target.kind === "times_a_week") return "free";
  return due ? "missed" : "none";
}

export const habitDayWord = (kind) => HABIT_LAMPS[kind][1];

/** The lamp of a day, without its words. */
export const habitLamp = (kind, { fresh = false } = {}) => h("span", { class: `lamp ${HABIT_LAMPS[kind][0]}${fresh ? " fresh" : ""}`, "aria-hidden": "true" }, h("i", {}));

/** What the lamps mean. `kinds` are those that can be seen. */
export function habitLegend(kinds) {
  return h(
    "ul",
    { class: "legend habit-legend", "aria-label": "What the lamps mean" },
    Object.entries(HABIT_LAMPS)
      .filter(([kind]) => kinds.has(kind) && !(kind === "free" && kinds.has("none")))
      .map(([kind, [, word]]) => h("li", { key: kind }, habitLamp(kind), word)),
  );
}

/** `12 days in a row, best 30` */
export function streakWords({ current, longest, unit }) {
  const one = unit === "weeks" ? "week" : "day";
  if (longest === 0) return "no streak yet";
  if (current === 0) return `no streak now, best ${counted(longest, one)}`;
  return `${counted(current, one)} in a row, ${current === longest ? "the best so far" : `best ${longest}`}`;
}

/** `1 of 3 this week`, for a habit that counts weeks. */
export function weekWords(habit) {
  if (habit.target.kind !== "times_a_week") return null;
  const monday = dateAfter(habit.today.date, -dayInWeek(habit.today.date));
  const done = habit.last_days.filter((day) => day.date >= monday && day.done === true).length;
  return `${done} of ${habit.target.times} this week`;
}

/** The last 14 days as small lamps. */
export function habitDays(habit, { fresh = false } = {}) {
  return h(
    "ol",
    { class: "habit-days", "aria-label": `The last ${habit.last_days.length} days` },
    habit.last_days.map((day) => {
      const kind = habitDay(habit, day);
      const words = `${dateWords(day.date)}: ${habitDayWord(kind)}`;
      return h("li", { key: day.date, title: words }, habitLamp(kind, { fresh: fresh && day.date === habit.today.date && kind === "done" }), h("span", { class: "vh" }, words));
    }),
  );
}

// ---- Check-ins ----

/** The check-in of a day, or null. A habit that was deleted meanwhile is found when something is changed. */
const checkInOf = (habit, date) => get(`${habitPath(habit)}/check-ins/${date}`).catch(orNull);

export const checkInKey = (habit) => `check in ${habit.practice_id}`;

/** Says that a habit was done today: the day that the page calls today. What was written about the day, perhaps elsewhere, stays. */
async function checkInToday(ctx, habit) {
  const { date } = habit.today;
  const found = await checkInOf(habit, date);
  if (!found?.done) await post(`${habitPath(habit)}/check-ins`, { date, done: true, note: found?.note ?? "" });
  ctx.state.justDone = habit.practice_id;
  ctx.say(`${habit.name}: done today.`);
}

async function takeBack(ctx, habit, date) {
  try {
    await del(`${habitPath(habit)}/check-ins/${date}`);
  } catch (error) {
    // Another tab was first.
    if (error.status !== 404) throw error;
  }
  ctx.say(`${habit.name}: the check-in of ${dateWords(date)} is removed.`);
}

/** Takes a check-in back. What was written about the day would be lost, so a note is asked for. */
function undoCheckIn(ctx, habit) {
  const key = `undo ${habit.practice_id}`;
  const { date, note } = habit.today;
  const label = "Undo";
  const name = `Undo: ${habit.name}`;
  if (!note) return button(ctx, label, { key, kind: "quiet", name, act: () => takeBack(ctx, habit, date) });
  const ask = () => confirmation(ctx, { title: "Remove today's check-in?", key, label: "Remove", text: `Your note of today is removed with it: “${note}”`, act: () => takeBack(ctx, habit, date) });
  return h("button", { class: "btn quiet", type: "button", key: `button ${key}`, "aria-label": name, onclick: ask }, label);
}

/**
 * The one large button of today. When it is done, the same button opens the day, so that a second press takes nothing back; Undo stands beside
 * it.
 */
export function checkInToggle(ctx, habit) {
  const { today } = habit;
  const kind = habitDay(habit, today);
  const isSaid = today.done !== null;
  const key = checkInKey(habit);
  const works = ctx.busy(key);
  const label = kind === "done" ? "Done today" : kind === "left" ? "Left out today" : "Check in";
  return h(
    "div",
    { class: "habit-now", key: `now ${habit.practice_id}` },
    h(
      "button",
      {
        class: `habit-press ${kind}`,
        type: "button",
        "aria-label": isSaid ? `${label}: ${habit.name}. Open the day` : `${label}: ${habit.name}`,
        "aria-busy": works ? "true" : null,
        // It stays a button that can have the focus while it works; `act` does nothing twice.
        onclick: () => (isSaid ? askForDay(ctx, habit, today.date, { done: today.done, note: today.note ?? "" }) : ctx.act(key, () => checkInToday(ctx, habit))),
      },
      habitLamp(kind, { fresh: ctx.state.justDone === habit.practice_id }),
      h("span", {}, works ? `${label}…` : label),
    ),
    isSaid && undoCheckIn(ctx, habit),
  );
}

export const checkInFailures = (ctx, habit) => [failureOf(ctx, checkInKey(habit)), !ctx.failure(checkInKey(habit)) && failureOf(ctx, `undo ${habit.practice_id}`)];

const isSameCheckIn = (one, other) => (one?.done ?? null) === (other?.done ?? null) && (one?.note ?? "") === (other?.note ?? "");

const checkInWords = (found) => (found === null ? "it has no check-in now" : `it is ${found.done ? "done" : "left out on purpose"}${found.note ? `, with the note “${found.note}”` : ""}`);

/** What a person says about one day. `known` is the check-in that the page shows for it, or null. */
export function askForDay(ctx, habit, date, known) {
  const draft = draftOf(`check-in ${habit.practice_id} ${date}`);
  const key = `day ${habit.practice_id} ${date}`;
  const day = { note: draft.get() || known?.note || "", theirs: undefined };
  const name = dateIn(date, { weekday: "long", day: "numeric", month: "long" }).replace(",", "");
  const isArchived = habit.status === "archived";
  ctx.forgive(key);
  const send = (done) => async () => {
    const now = await checkInOf(habit, date);
    if (!isSameCheckIn(now, known)) {
      known = now;
      // What another tab has written is not replaced unseen.
      if (!isSameCheckIn(now, { done, note: day.note.trim() })) {
        day.theirs = now;
        return;
      }
    } else await post(`${habitPath(habit)}/check-ins`, { date, done, note: day.note });
    draft.set("");
    if (date === habit.today.date && done) ctx.state.justDone = habit.practice_id;
    ctx.say(`${habit.name}, ${dateWords(date)}: ${done ? "done" : "left out on purpose"}.`);
    ctx.close();
  };
  const remove = async () => {
    await takeBack(ctx, habit, date);
    draft.set("");
    ctx.close();
  };
  ctx.open(() =>
    dialog(
      { title: name, onclose: () => ctx.close() },
      h("p", {}, h("b", {}, habit.name), known ? `: ${known.done ? "done" : "left out on purpose"}.` : ": no check-in."),
      isArchived
        ? [known?.note && h("p", { class: "long" }, known.note), h("p", { class: "muted" }, "An archived habit takes no check-ins. Make it active first."), dialogActs(ctx)]
        : [
            day.theirs !== undefined &&
              h(
                "div",
                { class: "conflict", role: "alert", key: "theirs" },
                h("p", {}, h("b", {}, "This day was changed while you wrote: "), `${checkInWords(day.theirs)}. Your note is kept. Save again, and yours replaces it.`),
                h("div", { class: "acts" }, press("Take theirs", () => { day.note = day.theirs?.note ?? ""; draft.set(""); ctx.close(); })),
              ),
            field(
              "Note",
              h("textarea", {
                rows: "3",
                maxlength: String(MOST_NOTE),
                value: day.note,
                oninput: (event) => {
                  day.note = event.target.value;
                  draft.set(day.note);
                  ctx.redraw();
                },
              }),
              { hint: "You and your agents can read it." },
            ),
            failureOf(ctx, key),
            dialogActs(
              ctx,
              [
                button(ctx, known?.done === false ? "Save" : "Left out on purpose", { key: `${key} left`, act: send(false) }),
                button(ctx, known?.done ? "Save" : "Done", { key: `${key} done`, kind: "primary", act: send(true) }),
              ],
              known && button(ctx, "Remove the check-in", { key, act: remove }),
            ),
            failureOf(ctx, `${key} left`),
            failureOf(ctx, `${key} done`),
          ],
    ),
  );
}

// ---- Targets ----

/** A target as texts, for forms: `["days", "mon", "wed"]` or `["times_a_week", "3"]`. */
export const targetTexts = (target) => (target.kind === "days" ? ["days", ...WEEK_DAYS.filter((day) => target.days.includes(day))] : ["times_a_week", String(target.times)]);

/** The target of such texts, as the platform wants it. */
export const targetOf = ([kind, ...rest]) => (kind === "days" ? { kind, days: rest } : { kind, times: Number(rest[0]) });

/** What is wrong with a target, or null. */
export const targetFault = ([kind, ...rest]) => (kind === "days" && rest.length === 0 ? "Choose at least one day." : null);

/** `every Monday and Friday` */
export function targetWords([kind, ...rest]) {
  if (kind === "times_a_week") return rest[0] === "1" ? "once a week" : `${rest[0]} times a week`;
  if (rest.length === WEEK_DAYS.length) return "every day";
  return `every ${listed(rest.map((day) => WEEK_DAY_NAMES[WEEK_DAYS.indexOf(day)]))}`;
}

/** The choice of days, or of times a week. `group` tells two such choices on a page apart. */
export function targetChoice(group, texts, onchange) {
  const [kind, ...rest] = texts;
  const isDays = kind === "days";
  const toggle = (day) => (event) => onchange(["days", ...WEEK_DAYS.filter((one) => (one === day ? event.target.checked : rest.includes(one)))]);
  return h(
    "fieldset",
    { class: "habit-target" },
    h("legend", {}, "How often"),
    h(
      "div",
      { class: "habit-kind" },
      h("label", { class: "check" }, h("input", { type: "radio", name: `${group} kind`, checked: isDays, onchange: () => onchange(["days", ...WEEK_DAYS]) }), "On these days"),
      h("label", { class: "check" }, h("input", { type: "radio", name: `${group} kind`, checked: !isDays, onchange: () => onchange(["times_a_week", "3"]) }), "Times a week, on any day"),
    ),
    isDays
      ? h(
          "div",
          { class: "habit-week", key: "days", role: "group", "aria-label": "Days" },
          WEEK_DAYS.map((day, index) => h("label", { key: day }, h("input", { type: "checkbox", checked: rest.includes(day), onchange: toggle(day), "aria-label": WEEK_DAY_NAMES[index] }), h("span", { "aria-hidden": "true" }, WEEK_DAY_NAMES[index].slice(0, 3)))),
        )
      : h(
          "div",
          { class: "habit-times", key: "times" },
          h("select", { "aria-label": "Times a week", value: rest[0], onchange: (event) => onchange(["times_a_week", event.target.value]) }, ["1", "2", "3", "4", "5", "6", "7"].map((times) => h("option", { value: times, key: times }, times === "1" ? "once" : `${times} times`))),
          h("span", { class: "muted" }, "from Monday to Sunday"),
        ),
    isDays && rest.length === 0 && h("small", { class: "bad", role: "alert" }, "Choose at least one day."),
  );
}
