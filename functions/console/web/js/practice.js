// One habit: its last twelve weeks, what was noted, and what can be changed about it.

import { del, edit, getAll } from "./api.js";
import { reading } from "./app.js";
import { changedIn, clashView, editOf, endEdit, freshen, hasClash, hasEdit, sendEdit, setIn } from "./conflict-view.js";
import { capital, counted, dateIn, dateWords, isoDate, shownZone } from "./format.js";
import { askForDay, checkInFailures, checkInToggle, dateAfter, dayInWeek, habitDay, habitDayWord, habitLamp, habitLegend, habitPath, streakWords, targetChoice, targetFault, targetOf, targetTexts, targetWords, WEEK_DAYS, weekWords } from "./habit.js";
import { button, confirmation, facts, failureOf, field, head, press, section } from "./parts.js";
import { zoneSelect } from "./settings.js";
import { h } from "./view.js";

const WEEKS_SHOWN = 12;
/** Twelve weeks have at most 84 check-ins, so the first page has all that the calendar shows. */
const CHECK_INS_A_PAGE = 100;

const ownPath = (ctx) => `/practices/${encodeURIComponent(ctx.params.practice_id)}`;

export const practicePage = {
  nav: "practice",
  of: "practice",
  title: (ctx) => ctx.data.habit.name,
  reads: (ctx) => ({
    habit: ownPath(ctx),
    checkIns: reading(`check-ins of ${ctx.params.practice_id}`, (signal) => getAll(`${ownPath(ctx)}/check-ins?limit=${CHECK_INS_A_PAGE}`, ctx.state.pages ?? 1, signal)),
  }),
  view(ctx) {
    const { habit } = ctx.data;
    const key = `habit ${habit.practice_id}`;
    if (ctx.state.editing === undefined) ctx.state.editing = hasEdit(key);
    if (ctx.state.editing) {
      ctx.state.form ??= editOf(key, habitFields(habit), habit.version);
      freshen(ctx.state.form, habitFields(habit), habit.version);
    }
    const isArchived = habit.status === "archived";
    return h(
      "article",
      { key: habit.practice_id },
      h("p", { class: "crumb" }, h("a", { href: "#/practices" }, "Practice")),
      head(
        habit.name,
        [capital(targetWords(targetTexts(habit.target))), isArchived && "archived"].filter(Boolean).join(" · "),
        !ctx.state.editing && press("Edit", () => { ctx.state.editing = true; ctx.redraw(); }, { key: "edit" }),
        isArchived
          ? button(ctx, "Make active", { key: "activate", kind: "primary", act: () => edit(ownPath(ctx), { status: "active" }) })
          : button(ctx, "Archive", { key: "archive", title: "It is kept, and is not due any more", act: () => edit(ownPath(ctx), { status: "archived" }) }),
        press("Delete…", () => deleteHabit(ctx, habit), { kind: "quiet", key: "delete" }),
      ),
      failureOf(ctx, "activate"),
      failureOf(ctx, "archive"),
      habit.description && !ctx.state.editing && h("p", { class: "long habit-about" }, habit.description),
      ctx.state.editing ? habitForm(ctx, habit) : habitToday(ctx, habit),
      h("div", { class: "habit-cols" }, habitCalendar(ctx, habit), habitNotes(ctx, habit)),
    );
  },
};

function habitToday(ctx, habit) {
  return h(
    "section",
    { class: "habit-today", key: "today", "aria-label": "Today" },
    habit.status === "active" && checkInToggle(ctx, habit),
    h("p", { class: "verdict" }, capital(streakWords(habit.streak)), weekWords(habit) && `; ${weekWords(habit)}`, "."),
    habit.status === "active" && h("p", { class: "muted" }, [dateWords(habit.today.date), !habit.today.due && habit.today.done === null && "not due today", habit.timezone && habit.timezone !== shownZone() && `its days begin and end in ${habit.timezone.replaceAll("_", " ")}`].filter(Boolean).join(" · ")),
    habit.today.note && h("p", { class: "long habit-note" }, habit.today.note),
    checkInFailures(ctx, habit),
  );
}

// ---- The calendar ----

/** The days of the calendar: twelve weeks from a Monday on, with the week of today. `null` is a day that has not begun. */
export function habitWeeks(habit, checkIns, count = WEEKS_SHOWN) {
  const { today, target } = habit;
  const monday = dateAfter(today.date, -dayInWeek(today.date));
  const byDate = new Map(checkIns.map((one) => [one.date, one]));
  const known = new Map(habit.last_days.map((day) => [day.date, day]));
  // Before its first day, a habit is not due. What the platform says of the last days counts for them.
  const first = checkIns.reduce((least, one) => (one.date < least ? one.date : least), firstDate(habit));
  return Array.from({ length: count }, (_, index) => {
    const begins = dateAfter(monday, (index - count + 1) * 7);
    let done = 0;
    const days = WEEK_DAYS.map((name, at) => {
      const date = dateAfter(begins, at);
      if (date > today.date) return null;
      const checkIn = byDate.get(date) ?? null;
      const isDue = target.kind === "days" ? target.days.includes(name) : done < target.times;
      if (checkIn?.done) done++;
      const day = { date, done: checkIn?.done ?? null, due: known.get(date)?.due ?? (isDue && date >= first) };
      return { ...day, checkIn, kind: habitDay(habit, day) };
    });
    return { begins, days, done, isBefore: dateAfter(begins, 6) < first };
  });
}

/** The date on which a habit was created, in its zone. */
function firstDate({ created_at: at, timezone }) {
  try {
    return new Intl.DateTimeFormat("en-CA", { timeZone: timezone ?? shownZone(), year: "numeric", month: "2-digit", day: "2-digit" }).format(new Date(at));
  } catch {
    // A zone that this browser does not know.
    return isoDate(at);
  }
}

function habitCalendar(ctx, habit) {
  const weeks = habitWeeks(habit, ctx.data.checkIns.data);
  const isWeekly = habit.target.kind === "times_a_week";
  const dates = weeks.flatMap((week) => week.days.filter(Boolean).map((day) => day.date));
  const at = dates.includes(ctx.state.day) ? ctx.state.day : habit.today.date;
  const move = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }[event.key];
    // The day that has the focus, not that of the last drawing: two keys may come before the next one.
    const from = event.target.dataset.date ?? at;
    const to = event.key === "Home" ? dates[0] : event.key === "End" ? dates.at(-1) : by && dateAfter(from, by);
    if (!to || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (!dates.includes(to)) return;
    ctx.state.day = to;
    event.currentTarget.querySelector(`[data-date="${to}"]`)?.focus();
    ctx.redraw();
  };
  const kinds = new Set(weeks.flatMap((week) => week.days.filter(Boolean).map((day) => day.kind)));
  return section(
    "The last twelve weeks",
    { id: "calendar", note: `${counted(weeks.reduce((sum, week) => sum + week.done, 0), "day")} done` },
    h(
      "table",
      { class: "habit-calendar", onkeydown: move },
      h("caption", { class: "vh" }, "Each day is a button that opens it. The arrow keys go from day to day."),
      h(
        "thead",
        {},
        h("tr", {}, h("th", { scope: "col" }, h("span", { class: "vh" }, "Week of")), WEEK_DAYS.map((name, index) => h("th", { scope: "col", key: name }, dateIn(dateAfter(weeks[0].begins, index), { weekday: "short" }))), isWeekly && h("th", { scope: "col" }, "Done")),
      ),
      h(
        "tbody",
        {},
        weeks.map((week) =>
          h(
            "tr",
            { key: week.begins },
            h("th", { scope: "row" }, dateIn(week.begins, { day: "numeric", month: "short" })),
            week.days.map((day, index) =>
              h(
                "td",
                { key: WEEK_DAYS[index], class: day?.date === habit.today.date ? "today" : null },
                day &&
                  h(
                    "button",
                    {
                      type: "button",
                      class: "habit-day",
                      "data-date": day.date,
                      tabindex: day.date === at ? "0" : "-1",
                      "aria-label": `${dateIn(day.date, { weekday: "long", day: "numeric", month: "long", year: "numeric" }).replace(",", "")}: ${habitDayWord(day.kind)}${day.checkIn?.note ? ", with a note" : ""}`,
                      onfocus: () => {
                        if (ctx.state.day === day.date) return;
                        ctx.state.day = day.date;
                        ctx.redraw();
                      },
                      onclick: () => askForDay(ctx, habit, day.date, day.checkIn),
                    },
                    habitLamp(day.kind, { fresh: day.date === habit.today.date && ctx.state.justDone === habit.practice_id }),
                    h("small", { "aria-hidden": "true", class: day.checkIn?.note ? "noted" : null }, dateIn(day.date, { day: "numeric" })),
                  ),
              ),
            ),
            isWeekly && h("td", { class: week.done >= habit.target.times ? "ok" : "muted", key: "done" }, !week.isBefore && `${week.done} of ${habit.target.times}`),
          ),
        ),
      ),
    ),
    habitLegend(kinds),
  );
}

// ---- Notes ----

function habitNotes(ctx, habit) {
  const { checkIns } = ctx.data;
  const noted = checkIns.data.filter((one) => one.note);
  return section(
    "Notes",
    { id: "notes", note: noted.length || null },
    noted.length === 0 && h("p", { class: "muted pad" }, checkIns.complete ? "No note yet. Open a day to write one." : `The newest ${counted(checkIns.data.length, "check-in")} have no note.`),
    h(
      "ol",
      { class: "habit-notes", "aria-label": "Notes, newest first" },
      noted.map((one) =>
        h(
          "li",
          { key: one.date },
          h("button", { class: "btn link", type: "button", onclick: () => askForDay(ctx, habit, one.date, one) }, dateWords(one.date), habit.today.date.slice(0, 4) !== one.date.slice(0, 4) && ` ${one.date.slice(0, 4)}`),
          !one.done && h("span", { class: "muted" }, " left out"),
          h("p", { class: "long" }, one.note),
        ),
      ),
    ),
    !checkIns.complete && h("div", { class: "list-end" }, button(ctx, "Older notes", { key: "older notes", act: async () => { ctx.state.pages = (ctx.state.pages ?? 1) + 1; } })),
    failureOf(ctx, "older notes"),
  );
}

// ---- Changing it ----

const habitFields = (habit) => ({ name: habit.name, description: habit.description, target: targetTexts(habit.target), timezone: habit.timezone ?? "" });
const HABIT_FIELDS = { name: "Name", description: "Why, or how", target: "How often", timezone: "Time zone" };

function habitForm(ctx, habit) {
  const { form } = ctx.state;
  const changed = changedIn(form);
  const key = "save habit";
  const set = (name, value) => {
    setIn(form, name, value);
    ctx.redraw();
  };
  const done = () => {
    ctx.state.editing = false;
    ctx.state.form = null;
    // The control that had the focus is gone.
    document.querySelector("#main")?.focus({ preventScroll: true });
    ctx.redraw();
  };
  const save = async () => {
    const fields = Object.fromEntries(changed.map((name) => [name, name === "target" ? targetOf(form.mine.target) : form.mine[name]]));
    const saved = await sendEdit(form, (version) => edit(habitPath(habit), fields, { ifMatch: version }));
    if (!saved) return;
    endEdit(form);
    done();
  };
  const isReady = changed.length > 0 && !hasClash(form) && form.mine.name.trim() !== "" && !targetFault(form.mine.target);
  return h(
    "form",
    { class: "form habit-edit", key: "form", "aria-label": "Edit the habit", onsubmit: (event) => { event.preventDefault(); if (isReady) ctx.act(key, save); } },
    clashView(ctx, form, HABIT_FIELDS),
    field("Name", h("input", { value: form.mine.name, maxlength: "120", required: true, autocomplete: "off", oninput: (event) => set("name", event.target.value), use: (node) => { queueMicrotask(() => node.focus()); } })),
    field("Why, or how", h("textarea", { rows: "2", maxlength: "1000", value: form.mine.description, oninput: (event) => set("description", event.target.value) }), { hint: "Your agents can read it." }),
    targetChoice("edit", form.mine.target, (target) => set("target", target)),
    field("Time zone", zoneSelect(form.mine.timezone, (event) => set("timezone", event.target.value), `As the account: ${shownZone()}`), { hint: "Its days begin and end there." }),
    changed.includes("target") && h("p", { class: "muted" }, "Streaks are counted again from all check-ins, as if it had always been so."),
    failureOf(ctx, key),
    h(
      "div",
      { class: "acts" },
      press(changed.length > 0 ? "Give up the changes" : "Close", () => { endEdit(form); done(); }, { kind: "quiet" }),
      h("div", { class: "end" }, button(ctx, "Save", { key, kind: "primary", disabled: !isReady, act: save })),
    ),
  );
}

function deleteHabit(ctx, habit) {
  confirmation(ctx, {
    title: "Delete this habit?",
    key: `delete ${habit.practice_id}`,
    label: "Delete",
    text: `“${habit.name}” is deleted with all its check-ins and notes. This cannot be undone. To keep them, archive it.`,
    act: async () => {
      await del(habitPath(habit));
      ctx.go("#/practices");
    },
  });
}
