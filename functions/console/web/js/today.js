// Today: what has happened, what is to come, and what waits for the person.

import { edit, post } from "./api.js";
import { LIVE_MS, RESTING_MS, optional } from "./app.js";
import { inboxCard } from "./cards.js";
import { clock, counted, longDay, moment, money, relative, shownZone } from "./format.js";
import { agentName } from "./frame.js";
import { checkInFailures, checkInToggle, habitHref, streakWords, weekWords } from "./habit.js";
import { readButton } from "./outputs.js";
import { button, chip, draftOf, failureOf, head, isStopped, link, oil, press, row, rows, section, sendOnEnter, willRunAt } from "./parts.js";
import { agenda, dayFigures, isAhead, itemHref, strip, tookText } from "./strip.js";
import { unfinishedSetups } from "./setups.js";
import { stoppedNote } from "./stop.js";
import { h } from "./view.js";

/** Approvals beyond these are read when their own page is opened. */
const MOST_TICKETS = 8;
const FIRST_CARDS = 12;

const approvals = (ctx) => (ctx.shared.inbox?.data ?? []).filter((item) => item.kind === "approval").slice(0, MOST_TICKETS);

const place = () => shownZone().split("/").at(-1).replaceAll("_", " ");

export const todayPage = {
  nav: "today",
  title: () => "Today",
  reads: (ctx) => ({
    // First, because the approvals wait for it. The frame reads it too, but less often.
    inbox: optional("/inbox"),
    day: optional("/day"),
    habits: optional("/practices?status=active&limit=100"),
    later: "/actions?state=scheduled&limit=100",
    usage: optional(`/usage?month=${new Date().toISOString().slice(0, 7)}`),
    ...Object.fromEntries(approvals(ctx).map((item) => [`approval ${item.action_id}`, optional(`/actions/${item.action_id}/approval`)])),
  }),
  every: (ctx) => ((ctx.data.day?.data ?? []).some((item) => item.state === "running" || item.state === "claimed") ? LIVE_MS : RESTING_MS),
  view(ctx) {
    const { day, usage } = ctx.data;
    const { inbox, agents, account } = ctx.shared;
    const isFirst = agents && agents.data.length === 0;
    return h(
      "div",
      { key: "today" },
      head(longDay(day?.now ?? Date.now()), place(), !isFirst && link("Set up an agent", "#/setup", { kind: "" })),
      zoneOffer(ctx, account),
      untoldNote(ctx, day),
      isFirst && firstVisit(ctx),
      isFirst && habitsToday(ctx),
      day && !isFirst && daySection(day),
      !isFirst &&
        h(
          "div",
          { class: "cols" },
          h("div", {}, waitsForYou(ctx, inbox)),
          h("div", {}, day && next(ctx, day, ctx.data.later.data), day && willNotRun(ctx, day), habitsToday(ctx), day && justHappened(ctx, day), usage && spending(usage, account)),
        ),
    );
  },
};

const ZONE_KEPT = "lamplighter.zone";
const UNTOLD_KEPT = "lamplighter.untold";

/** Results that nobody is told of are lost on people who do not look here. */
function untoldNote(ctx, day) {
  if (!day?.untold || localStorage.getItem(UNTOLD_KEPT)) return null;
  return h(
    "div",
    { class: "banner untold", key: "untold", role: "region", "aria-label": "Who is told" },
    h("p", {}, day.untold),
    link("Add a channel", "#/notices", { kind: "" }),
    press("They may wait here", () => {
      localStorage.setItem(UNTOLD_KEPT, "yes");
      ctx.redraw();
    }, { kind: "quiet" }),
  );
}

/** The zone of the browser, if the account still has the one that every new account has. */
function unsaidZone(account) {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return account?.timezone !== "UTC" || here === "UTC" || here === undefined || localStorage.getItem(ZONE_KEPT) ? null : here;
}

/** A new account has its times in UTC. The browser knows where the person is. */
function zoneOffer(ctx, account) {
  const here = unsaidZone(account);
  if (!here) return null;
  return h(
    "div",
    { class: "banner zone", key: "zone", role: "region", "aria-label": "Time zone" },
    h("p", {}, `Times are shown, and schedules are read, in UTC. You seem to be in ${here.replaceAll("_", " ")}.`),
    button(ctx, `Use ${here.replaceAll("_", " ")}`, { key: "zone", act: () => edit("/account", { timezone: here }) }),
    press("Stay with UTC", () => {
      localStorage.setItem(ZONE_KEPT, "UTC");
      ctx.redraw();
    }, { kind: "quiet" }),
    failureOf(ctx, "zone"),
  );
}

function firstVisit(ctx) {
  const draft = draftOf("setup");
  const begin = async (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("sentence").trim();
    if (!text || isStopped(ctx)) return;
    draft.set(text);
    // "At 7" means the person's 7. If it can't be stored, the ticket shows the zone that counts.
    const here = unsaidZone(ctx.shared.account);
    if (here) await edit("/account", { timezone: here }).catch(() => null);
    ctx.go("#/setup/begin");
  };
  return h(
    "section",
    { class: "first", key: "first", "aria-label": "Begin" },
    unfinishedSetups(ctx),
    h("p", { class: "lead" }, "What should somebody look after for you?"),
    h(
      "form",
      { onsubmit: begin },
      h("label", {}, h("span", { class: "vh" }, "What should it look after?"), h("textarea", { name: "sentence", rows: "2", maxlength: "4000", required: true, placeholder: "Every Monday, tell me what my three competitors changed", value: draft.get(), oninput: (event) => draft.set(event.target.value), onkeydown: sendOnEnter })),
      stoppedNote(ctx, "no conversation begins"),
      h("button", { class: "btn primary", disabled: isStopped(ctx) }, "Set up an agent"),
    ),
    h(
      "ol",
      { class: "how" },
      h("li", {}, h("b", {}, "You say it."), h("span", {}, "A short conversation makes an agent. One sentence is enough to begin.")),
      h("li", {}, h("b", {}, "You approve it."), h("span", {}, "Nothing runs by itself before you have seen exactly what will run, when, and what it may cost.")),
      h("li", {}, h("b", {}, "It keeps the appointment."), h("span", {}, "Here you see what ran, what did not, and why.")),
    ),
  );
}

function daySection(day) {
  const figures = dayFigures(day);
  const ahead = day.data.find((item) => item.state === "due" && Date.parse(item.at) >= Date.now());
  return h(
    "section",
    { class: "day", key: "day", "aria-label": "The day" },
    strip(day),
    agenda(day),
    h(
      "div",
      { class: "legend" },
      figures.map(([number, word]) => h("span", { key: word }, h("b", {}, String(number)), ` ${word}`)),
      figures.length === 0 && h("span", {}, "Nothing is planned for today."),
      !day.complete && h("span", {}, "There is more than is shown here."),
      ahead && h("span", { class: "end" }, "next: ", h("b", {}, ahead.action_title), ` at ${clock(ahead.at)}`),
    ),
  );
}

function waitsForYou(ctx, inbox) {
  const items = inbox?.data ?? [];
  if (inbox && ctx.state.waiting > items.length) ctx.say(items.length === 0 ? "Nothing waits for you." : `${counted(items.length, "thing")} ${items.length === 1 ? "waits" : "wait"} for you.`);
  if (inbox) ctx.state.waiting = items.length;
  const shown = ctx.state.all ? items : items.slice(0, FIRST_CARDS);
  const more = { approvals: Object.fromEntries(items.filter((item) => item.kind === "approval").map((item) => [item.action_id, ctx.data[`approval ${item.action_id}`]])) };
  return section(
    "Waits for you",
    { note: items.length || null },
    !inbox && h("p", { class: "muted pad" }, "Reading…"),
    inbox && items.length === 0 && h("p", { class: "calm" }, "Nothing waits for you."),
    shown.map((item) => inboxCard(ctx, item, more)),
    items.length > shown.length && press(`Show all ${items.length}`, () => { ctx.state.all = true; ctx.redraw(); }),
    inbox && !inbox.complete && h("p", { class: "muted" }, "There is more than is shown here."),
  );
}

const MOST_NEXT = 3;

/** What comes next: today, and then the first time of each action on a later day. */
function comingNext(ctx, day, scheduled) {
  const today = day.data.filter((item) => isAhead(item) && Date.parse(item.at) >= Date.now() - 60_000);
  const later = scheduled
    .filter((action) => willRunAt(action) && Date.parse(action.next_due) >= Date.parse(day.to))
    .map((action) => ({ action_id: action.action_id, action_title: action.title, agent_name: agentName(ctx, action.agent_id), at: action.next_due }))
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  return [...today, ...later].slice(0, MOST_NEXT);
}

function next(ctx, day, scheduled) {
  const items = comingNext(ctx, day, scheduled);
  const agents = ctx.shared.agents?.data ?? [];
  const oneAgent = agents.length === 1 && agents[0];
  return section(
    "Next",
    {},
    items.length === 0 && !isStopped(ctx) && h("p", { class: "muted pad" }, "No action is scheduled. ", oneAgent && h("a", { href: `#/agents/${oneAgent.agent_id}/actions` }, "Plan one")),
    stoppedNote(ctx, "nothing runs"),
    rows(
      items.map((item) => {
        const key = `run ${item.action_id}`;
        const isToday = Date.parse(item.at) < Date.parse(day.to);
        return [
          row({ key: `${item.action_id} ${item.at}`, time: isToday ? clock(item.at) : moment(item.at), title: item.action_title, href: `#/actions/${item.action_id}`, note: [item.agent_name, isToday && relative(item.at)].filter(Boolean).join(" · "), end: button(ctx, "Run now", { key, kind: "quiet", starts: true, act: () => post(`/actions/${item.action_id}/run`, {}) }) }),
          failureOf(ctx, key),
        ];
      }),
    ),
  );
}

const MOST_IDLE = 4;

function willNotRun(ctx, day) {
  const items = [...day.not_running, ...day.not_running_later];
  if (items.length === 0) return null;
  const shown = ctx.state.allIdle ? items : items.slice(0, MOST_IDLE);
  return section(
    "Will not run",
    { note: items.length },
    rows(
      shown.map((item) =>
        row({
          key: `idle ${item.action_id}`,
          time: Date.parse(item.next_at) < Date.parse(day.to) ? clock(item.next_at) : moment(item.next_at),
          title: item.action_title,
          href: `#/actions/${item.action_id}`,
          // That everything is stopped is said once.
          note: [item.agent_name, item.code === "account_stopped" ? null : item.text].filter(Boolean).join(" · "),
        }),
      ),
    ),
    items.length > shown.length && press(`Show all ${items.length} that will not run`, () => { ctx.state.allIdle = true; ctx.redraw(); }),
  );
}

/** The habits of today, with those that are done already, so that a check-in can be taken back. */
function habitsToday(ctx) {
  const habits = [...(ctx.data.habits?.data ?? [])].reverse();
  if (habits.length === 0) return null;
  const shown = habits.filter((habit) => habit.today.due || habit.today.done !== null);
  const left = shown.filter((habit) => habit.today.done === null).length;
  return section(
    "Habits",
    { note: left > 0 ? `${left} left` : null, end: h("a", { href: "#/practices" }, "All") },
    shown.length === 0 && h("p", { class: "muted pad" }, "No habit is due today."),
    h(
      "ul",
      { class: "habits small", "aria-label": "Habits of today" },
      shown.map((habit) =>
        h(
          "li",
          { key: habit.practice_id },
          h("div", { class: "habit-what" }, h("a", { href: habitHref(habit) }, habit.name), h("small", {}, [streakWords(habit.streak), weekWords(habit)].filter(Boolean).join(" · "))),
          checkInToggle(ctx, habit),
          checkInFailures(ctx, habit),
        ),
      ),
    ),
  );
}

function justHappened(ctx, day) {
  const items = day.data.filter((item) => !isAhead(item)).slice(-4).reverse();
  if (items.length === 0) return null;
  return section(
    "Just happened",
    {},
    rows(
      items.map((item) =>
        row({
          key: `${item.action_id} ${item.at} ${item.run_id ?? ""}`,
          time: clock(item.at),
          title: item.action_title,
          href: itemHref(item),
          note: [item.agent_name, item.reason, tookText(item), item.cost_micros > 0 && money(item.cost_micros)].filter(Boolean).join(" · "),
          end: [readButton(ctx, item, item.action_id, item.action_title), chip(item.state)],
        }),
      ),
    ),
  );
}

/** Only if something was spent: the account has the ceilings. */
function spending(usage, account) {
  const month = usage.month?.total.cost_micros ?? 0;
  const ceiling = account?.budget.per_month_micros;
  if (!(usage.spent_micros > 0 || usage.committed_micros > 0 || month > 0)) return null;
  return section(
    "Spending",
    { note: "today" },
    oil({ spent: usage.spent_micros ?? 0, reserved: Math.max(0, (usage.committed_micros ?? 0) - (usage.spent_micros ?? 0)), ceiling: usage.ceiling_micros + (usage.raised_micros ?? 0) }),
    h("p", { class: "muted" }, month > 0 && `${money(month)}${ceiling ? ` of ${money(ceiling)}` : ""} this month · `, h("a", { href: "#/account/usage" }, "Usage")),
  );
}
