// An approval as a ticket: the stub says when, the body says exactly what is approved.

import { del, post } from "./api.js";
import { budgetText, changeView, conditionText, fieldName, monthText, scheduleBeside, toolWords, watchText } from "./changes.js";
import { flash } from "./app.js";
import { bytes, clock, counted, dayMonth, dayMonthYear, isoDate, moment, shortHash, weekdayShort, zoneName } from "./format.js";
import { button, confirmation, facts, failureOf, moreMenu, press } from "./parts.js";
import { h } from "./view.js";

const list = (items) => items.length > 0 && h("ul", { class: "plain" }, items.map((item) => h("li", {}, item)));

/** What an action may use, in words. */
export function grantTexts(content) {
  const tools = (content.tools ?? []).map((tool) => tool.name);
  const granted = (content.grants ?? []).map((grant) => {
    const most = content.max_uses?.[grant];
    return most ? `${toolWords(grant)}, up to ${counted(most, "time")} a run` : toolWords(grant);
  });
  return [...granted, ...tools.filter((tool) => !(content.grants ?? []).includes(tool)).map(toolWords)];
}

/** What a person must know of it to approve it. */
const plainFacts = ({ current, expected_cost: cost }) => [
  ["Will", h("p", { class: "long" }, current.task_config.instructions || current.description)],
  ["Calls", current.call && h("p", { class: "long" }, `${current.call.method} ${current.call.url}`)],
  ["Only if", list((current.watches ?? []).map(watchText))],
  ["May use", !current.call && (grantTexts(current).join("; ") || "nothing beside its own notes and outputs")],
  ["May cost", current.call ? "nothing: no model is asked" : budgetText(current.budget)],
  ["A month", monthText(cost)],
  ["Expected", current.task_config.expected_output],
];

/** The rest of what is approved. */
const furtherFacts = ({ current, notebook }) => [
  ["Headers", list(Object.entries(current.call?.headers ?? {}).map(([name, value]) => `${name}: ${value}`))],
  ["Secret headers", list(Object.entries(current.call?.secret_headers ?? {}).map(([name, header]) => `${name}: ${header.prefix ?? ""}••• (the secret ${header.secret})`))],
  ["Signed with", current.call?.sign_with && `the secret ${current.call.sign_with}`],
  ["Body", current.call?.body && h("p", { class: "long" }, current.call.body)],
  ["Its report", current.call?.expect_report_within_minutes && `must come within ${counted(current.call.expect_report_within_minutes, "minute")}`],
  ["A program checks", list((current.conditions ?? []).map(conditionText))],
  ["Notebook", notebook.bytes > 0 ? `it keeps ${bytes(notebook.bytes)} for its next run` : null],
];

/** All facts of what is approved. */
export const contentFacts = (view) => facts([...plainFacts(view), ...furtherFacts(view)]);

/**
 * The ticket of an action. `view` is the answer of `/actions/{id}/approval`; `nextAt` is when it would run first.
 * `rehearsal` is a finished rehearsal, whose smaller grant is then approved.
 */
export function ticket(ctx, { actionId, title, agent, view, nextAt, scheduleText, isOnPage, rehearsal }) {
  const drifted = view.approved && !view.holds;
  const key = `approve ${actionId}`;
  const hash = rehearsal ? rehearsal.approval_hash : view.approval_hash;
  return h(
    "article",
    { class: `ticket${drifted ? " drift" : " draft"}`, key: `ticket ${actionId}`, "aria-label": drifted ? `Approval of ${title}, changed since you approved` : `Approval of ${title}` },
    stub(nextAt, Boolean(view.current.schedule), scheduleText),
    h(
      "div",
      { class: "body" },
      drifted &&
        h(
          "div",
          { class: "drift-flag" },
          h("p", {}, h("b", {}, "Changed since you approved it. "), "Nothing runs until you approve it again."),
          view.changes.map((change) => h("div", { class: "change", key: change.field }, h("p", { class: "of" }, fieldName(change.field)), changeView(ctx, change.field, change.approved, change.current))),
        ),
      h("h3", {}, isOnPage ? title : h("a", { href: `#/actions/${actionId}` }, title)),
      agent && !isOnPage && h("p", { class: "muted" }, agent),
      facts(plainFacts(view)),
      view.told && h("p", { class: "muted" }, view.told.text, view.told.channels.length === 0 && [" ", h("a", { href: "#/notices" }, "Add a channel")]),
      view.cannot?.length > 0 && h("ul", { class: "warnings", "aria-label": "What it cannot do" }, view.cannot.map((one) => h("li", { key: one }, one))),
      view.warnings.length > 0 && h("ul", { class: "warnings" }, view.warnings.map((warning) => h("li", {}, warning))),
      rehearsal && h("p", { class: "aside-note" }, `It may use only what the rehearsal used: ${rehearsal.grants.map(toolWords).join(", ") || "nothing"}.`),
      h(
        "details",
        { class: "ticket-details", key: "details" },
        h("summary", {}, "Details"),
        facts([...furtherFacts(view), ["Version", [h("code", { title: hash }, shortHash(hash)), drifted && [", before ", h("code", { title: view.approved.hash }, shortHash(view.approved.hash))]]]]),
      ),
      failureOf(ctx, key),
      h(
        "div",
        { class: "acts" },
        // The page of the action has a menu of its own.
        !isOnPage && moreMenu("menu", press("Delete", () => deleteAction(ctx, actionId, title, false), { kind: "quiet", key: "delete" })),
        h(
          "div",
          { class: "end" },
          h("a", { class: "btn", href: `#/actions/${actionId}${isOnPage ? "/edit" : ""}` }, isOnPage ? "Edit" : "Look closer"),
          button(ctx, nextAt ? "Approve: runs by itself" : "Approve", {
            key,
            kind: "primary",
            act: async () => {
              // What it says now stands at the top of its page.
              if (isOnPage) scrollTo(0, 0);
              const approved = await post(`/actions/${actionId}/approve`, rehearsal ? { approval_hash: hash, rehearsal: rehearsal.run_id } : { approval_hash: hash });
              flash(approved.next_due ? `Approved. “${title}” runs next ${moment(approved.next_due)}.` : `Approved. “${title}” runs when you run it.`);
            },
          }),
        ),
      ),
    ),
  );
}

/** When it runs first, and how it goes on. `further`: what stands below. */
export function stub(nextAt, hasSchedule, scheduleText, further) {
  return h(
    "div",
    { class: "stub" },
    nextAt ? h("div", { class: "big" }, h("span", {}, stubDay(nextAt)), " ", h("span", {}, clock(nextAt))) : h("div", { class: "big" }, hasSchedule ? "never" : "no time"),
    h("div", { class: "small" }, scheduleText ? scheduleBeside(scheduleText, nextAt) : "It runs when you run it.", nextAt && h("div", {}, stubDate(nextAt)), further),
  );
}

const daysUntil = (at) => Math.round((Date.parse(isoDate(at)) - Date.parse(isoDate(Date.now()))) / 86_400_000);

function stubDay(at) {
  const days = daysUntil(at);
  if (days === 0) return "today";
  return days < 7 ? weekdayShort(at) : dayMonth(at);
}

/** What the day in large figures leaves open: the date of a weekday, or the weekday of a date. */
const stubDate = (at) => `${daysUntil(at) < 7 ? dayMonthYear(at) : `${weekdayShort(at)} ${isoDate(at).slice(0, 4)}`}, ${zoneName(at)}`;

/** Asks, and deletes an action with its runs. */
export function deleteAction(ctx, actionId, title, leave) {
  confirmation(ctx, {
    title: "Delete this action?",
    key: `delete ${actionId}`,
    label: "Delete",
    text: `“${title}” is deleted with its runs and its notebook. The assets that it has made stay.`,
    act: async () => {
      await del(`/actions/${actionId}`);
      if (leave) history.length > 1 ? history.back() : ctx.go("#/");
    },
  });
}
