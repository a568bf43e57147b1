// The habits of a person: today's check-in of each, and the last two weeks.

import { edit, post } from "./api.js";
import { counted } from "./format.js";
import { checkInFailures, checkInToggle, habitDay, habitDays, habitHref, habitLegend, habitPath, streakWords, targetChoice, targetFault, targetOf, weekWords, WEEK_DAYS } from "./habit.js";
import { button, draftOf, empty, failureOf, field, head, link, section } from "./parts.js";
import { h } from "./view.js";

const MOST_HABIT_NAME = 120;
/** The platform keeps at most so many, with archived ones. */
const MOST_HABITS = 100;
const HABITS_PATH = `/practices?limit=${MOST_HABITS}`;
const NEW_HABIT = draftOf("new habit");

export const practicesPage = {
  nav: "practice",
  title: () => "Practice",
  reads: () => ({ habits: HABITS_PATH }),
  view(ctx) {
    const { habits } = ctx.data;
    // The oldest first: a new habit does not move those that a hand knows.
    const all = [...habits.data].reverse();
    const active = all.filter((habit) => habit.status === "active");
    const archived = all.filter((habit) => habit.status === "archived");
    const isNew = ctx.query.new !== undefined || all.length === 0;
    const toDo = active.filter((habit) => habit.today.due && habit.today.done === null).length;
    return h(
      "div",
      { key: "practices" },
      head("Practice", active.length > 0 && (toDo === 0 ? "nothing more today" : `${counted(toDo, "habit")} left today`), !isNew && link("New habit", "#/practices?new", { kind: "primary" })),
      all.length === 0 && empty("Nothing is tracked yet. Name one thing that you want to do again and again."),
      isNew && newHabit(ctx, all.length === 0),
      active.length > 0 && [habitList(ctx, active), habitLegend(new Set(active.flatMap((habit) => habit.last_days.map((day) => habitDay(habit, day)))))],
      all.length > 0 && active.length === 0 && h("p", { class: "calm" }, "No habit is active."),
      archived.length > 0 && archivedHabits(ctx, archived),
      h("p", { class: "muted habit-agents" }, "Your agents can read your habits, with notes and streaks: they have the tool ", h("code", {}, "query_practice"), ". They cannot check in for you."),
    );
  },
};

function habitList(ctx, habits) {
  return h(
    "ul",
    { class: "habits", "aria-label": "Habits" },
    habits.map((habit) =>
      h(
        "li",
        { key: habit.practice_id },
        checkInToggle(ctx, habit),
        h(
          "div",
          { class: "habit-what" },
          h("a", { href: habitHref(habit) }, habit.name),
          h("small", {}, [streakWords(habit.streak), weekWords(habit), !habit.today.due && habit.today.done === null && "not due today"].filter(Boolean).join(" · ")),
          habit.today.note && h("small", { class: "habit-note" }, habit.today.note),
        ),
        habitDays(habit, { fresh: ctx.state.justDone === habit.practice_id }),
        checkInFailures(ctx, habit),
      ),
    ),
  );
}

function archivedHabits(ctx, habits) {
  return section(
    "Archived",
    { note: habits.length },
    h(
      "ul",
      { class: "rows habit-archived" },
      habits.map((habit) => {
        const key = `activate ${habit.practice_id}`;
        return [
          h(
            "li",
            { key: habit.practice_id },
            h("span", { class: "what" }, h("a", { href: habitHref(habit) }, habit.name), h("small", {}, habit.streak.longest === 0 ? "no streak" : `best ${counted(habit.streak.longest, habit.streak.unit === "weeks" ? "week" : "day")} in a row`)),
            h("span", { class: "end" }, button(ctx, "Make active", { key, kind: "quiet", name: `Make active: ${habit.name}`, act: () => edit(habitPath(habit), { status: "active" }) })),
          ),
          failureOf(ctx, key),
        ];
      }),
    ),
  );
}

/** What was typed into the form before a reload. */
function keptHabit() {
  try {
    const kept = JSON.parse(NEW_HABIT.get() || "null");
    if (typeof kept?.name === "string" && Array.isArray(kept.target)) return kept;
  } catch {
    NEW_HABIT.set("");
  }
  return { name: "", target: ["days", ...WEEK_DAYS] };
}

function newHabit(ctx, isFirst) {
  const form = (ctx.state.newHabit ??= keptHabit());
  const key = "new habit";
  const set = (fields) => {
    Object.assign(form, fields);
    NEW_HABIT.set(form.name ? JSON.stringify(form) : "");
    ctx.redraw();
  };
  const create = async () => {
    const made = await post("/practices", { name: form.name, target: targetOf(form.target) });
    ctx.state.newHabit = null;
    NEW_HABIT.set("");
    ctx.say(`${made.name} is tracked from now on.`);
    ctx.go("#/practices");
    document.querySelector("#main")?.focus({ preventScroll: true });
  };
  const isReady = form.name.trim() !== "" && !targetFault(form.target);
  return h(
    "form",
    {
      class: "form habit-new",
      key: "new",
      "aria-label": "New habit",
      onsubmit: (event) => {
        event.preventDefault();
        if (isReady) ctx.act(key, create);
      },
    },
    field("What do you want to do?", h("input", { name: "name", value: form.name, maxlength: String(MOST_HABIT_NAME), required: true, autocomplete: "off", placeholder: "Read for twenty minutes", oninput: (event) => set({ name: event.target.value }), use: isFirst ? undefined : (node) => { queueMicrotask(() => node.focus()); } })),
    targetChoice("new", form.target, (target) => set({ target })),
    failureOf(ctx, key),
    h("div", { class: "acts" }, h("button", { class: "btn primary", disabled: !isReady || ctx.busy(key) }, ctx.busy(key) ? "Track it…" : "Track it"), !isFirst && link("Close", "#/practices", { kind: "quiet" })),
  );
}
