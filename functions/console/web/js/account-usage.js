// What models have used and cost in a month: a chart by day with its table, and tables by agent, action and model.

import { get, getAll } from "./api.js";
import { reading } from "./app.js";
import { counted, figure, isoDate, money, monthName } from "./format.js";
import { empty, facts, link, oil, section } from "./parts.js";
import { h } from "./view.js";

/** Usage is kept for 400 days. */
const MONTHS_BACK = 13;

const MEASURES = { cost: ["Cost", (used) => used.cost_micros, money], calls: ["Calls", (used) => used.calls, figure], tokens: ["Tokens", (used) => tokensIn(used) + used.output_tokens, figure] };

const tokensIn = (used) => used.input_tokens + used.cache_read_tokens + used.cache_write_tokens;

const thisMonth = () => isoDate(Date.now()).slice(0, 7);

function monthAfter(month, by) {
  const [year, number] = month.split("-").map(Number);
  const all = year * 12 + number - 1 + by;
  return `${Math.floor(all / 12)}-${String((all % 12) + 1).padStart(2, "0")}`;
}

const midMonth = (month) => new Date(`${month}-15T12:00:00Z`);
const monthTitle = (month) => `${monthName(midMonth(month))} ${month.slice(0, 4)}`;
const daysIn = (month) => new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5, 7)), 0)).getUTCDate();

export function usageMonth(ctx) {
  const now = thisMonth();
  const asked = ctx.query.month ?? "";
  return /^\d{4}-(0[1-9]|1[0-2])$/.test(asked) && asked <= now && asked >= monthAfter(now, -MONTHS_BACK) ? asked : now;
}

/** The reads of the page. The month is no part of the name, so that one month stays until the other is there. */
export const usageReads = (ctx) => ({
  usage: reading("usage of a month", (signal) => get(`/usage?month=${usageMonth(ctx)}`, signal)),
  agents: "/agents?limit=200",
  actions: reading("actions by name", (signal) => getAll("/actions?limit=200", 5, signal)),
});

export function usageView(ctx) {
  const { usage, agents, actions, account, limits } = ctx.data;
  const month = usageMonth(ctx);
  const isOld = usage.month.month !== month;
  const { total } = usage.month;
  const isEmpty = total.calls === 0 && total.cost_micros === 0;
  const measure = ctx.query.show in MEASURES ? ctx.query.show : total.cost_micros > 0 ? "cost" : "calls";
  return [
    monthLinks(ctx, month),
    month === thisMonth() && spendingNow(usage, account, limits),
    isOld
      ? h("p", { class: "muted pad", role: "status" }, "Reading…")
      : isEmpty
        ? empty(`No model was called in ${monthTitle(month)}.`, month === thisMonth() ? link("See your agents", "#/agents", { kind: "" }) : link("Show this month", "#/account/usage", { kind: "" }))
        : [
            h("p", { class: "verdict" }, total.cost_micros > 0 && [h("b", {}, money(total.cost_micros)), ` in ${monthTitle(month)}: `], `${counted(total.calls, "call")} of models, ${figure(tokensIn(total))} tokens read and ${figure(total.output_tokens)} written.`),
            byDay(ctx, usage.month, measure),
            usedTable("By agent", usage.month.by_agent, (used) => agentCell(used, agents)),
            usedTable("By action", usage.month.by_action, (used) => actionCell(used, actions)),
            usedTable("By model", usage.month.by_model, (used) => h("span", { class: "mono" }, used.provider ? `${used.provider}/${used.model}` : used.model)),
          ],
  ];
}

function monthLinks(ctx, month) {
  const before = monthAfter(month, -1);
  const after = monthAfter(month, 1);
  const to = (one) => `#/account/usage${one === thisMonth() ? "" : `?month=${one}`}`;
  return h(
    "nav",
    { class: "months", "aria-label": "Months" },
    before >= monthAfter(thisMonth(), -MONTHS_BACK) ? h("a", { href: to(before) }, `← ${monthTitle(before)}`) : h("span", {}),
    h("h2", {}, monthTitle(month)),
    after <= thisMonth() ? h("a", { href: to(after) }, `${monthTitle(after)} →`) : h("span", {}),
  );
}

function spendingNow(usage, account, limits) {
  const ceiling = account.budget.per_month_micros;
  return h(
    "div",
    { class: "pair", key: "now" },
    h("div", {}, h("h3", { class: "small-title" }, "Today (UTC)"), oil({ spent: usage.spent_micros ?? 0, reserved: Math.max(0, (usage.committed_micros ?? 0) - (usage.spent_micros ?? 0)), ceiling: usage.ceiling_micros + (usage.raised_micros ?? 0) })),
    h(
      "div",
      {},
      h("h3", { class: "small-title" }, "This month"),
      ceiling ? oil({ spent: usage.month.total.cost_micros, ceiling }) : h("p", { class: "muted pad" }, "No ceiling for the month. ", h("a", { href: "#/account" }, "Set one"), "."),
      limits.requests.limited && facts([["Requests", `${figure(limits.requests.used)} of ${figure(limits.requests.used + (limits.requests.left ?? 0))}`]]),
      usage.overage_micros > 0 && facts([["For requests beyond the plan", money(usage.overage_micros)]]),
    ),
  );
}

// ---- By day ----

function byDay(ctx, { month, by_day: days }, measure) {
  const [name, of, text] = MEASURES[measure];
  const values = new Map(days.map((day) => [day.date, of(day)]));
  const all = Array.from({ length: daysIn(month) }, (_, index) => `${month}-${String(index + 1).padStart(2, "0")}`);
  const most = Math.max(...values.values(), 0);
  const best = days.reduce((one, day) => (one && of(one) >= of(day) ? one : day), null);
  const dayText = (date) => `${Number(date.slice(8))} ${monthName(midMonth(month))}`;
  const to = (one) => `#/account/usage?${new URLSearchParams({ ...(ctx.query.month ? { month: ctx.query.month } : {}), show: one })}`;
  return section(
    "By day",
    { id: "days", end: h("span", { class: "measures" }, Object.entries(MEASURES).map(([key, [label]]) => h("a", { href: to(key), key, "aria-current": key === measure ? "true" : null }, label))) },
    h(
      "div",
      { class: "chart-and-table" },
      h(
        "figure",
        { class: "chart" },
        h("span", { class: "top muted", "aria-hidden": "true" }, text(most)),
        h(
          "svg",
          { viewBox: `0 0 ${all.length * 10} 100`, preserveAspectRatio: "none", role: "img", "aria-label": `${name} by day in ${monthTitle(month)}. ${best && of(best) > 0 ? `The most was ${text(of(best))} on ${dayText(best.date)}.` : "Nothing."} The table has all days.` },
          h("line", { x1: "0", y1: "0.5", x2: String(all.length * 10), y2: "0.5", class: "rule" }),
          all.map((date, index) => {
            const value = values.get(date) ?? 0;
            const height = most > 0 ? Math.max(value > 0 ? 1.5 : 0, (99 * value) / most) : 0;
            return height > 0 && h("rect", { key: date, x: String(index * 10 + 1.5), y: String(100 - height), width: "7", height: String(height) }, h("title", {}, `${dayText(date)}: ${text(value)}`));
          }),
          h("line", { x1: "0", y1: "99.5", x2: String(all.length * 10), y2: "99.5", class: "rule" }),
        ),
        h("figcaption", { class: "muted" }, [1, 8, 15, 22, all.length].map((day) => h("span", { key: day, style: { "--at": `${(100 * (day - 0.5)) / all.length}%` } }, String(day)))),
      ),
      h(
        "div",
        { class: "days-table", tabindex: "0", role: "region", "aria-label": "Days with calls" },
        h(
          "table",
          { class: "figures" },
          h("caption", { class: "vh" }, `Days of ${monthTitle(month)} with calls of models`),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Day"), h("th", { scope: "col" }, "Calls"), h("th", { scope: "col" }, "Tokens"), h("th", { scope: "col" }, "Cost"))),
          h("tbody", {}, days.map((day) => h("tr", { key: day.date }, h("th", { scope: "row" }, dayText(day.date)), h("td", {}, figure(day.calls)), h("td", {}, figure(tokensIn(day) + day.output_tokens)), h("td", {}, money(day.cost_micros))))),
        ),
      ),
    ),
  );
}

// ---- Tables ----

function agentCell(used, agents) {
  if (!used.agent_id) return "No agent: setting one up, notes about themes";
  const agent = agents.data.find((one) => one.agent_id === used.agent_id);
  return agent ? h("a", { href: `#/agents/${agent.agent_id}` }, agent.name) : agents.has_more ? h("a", { href: `#/agents/${used.agent_id}` }, used.agent_id) : "A deleted agent";
}

function actionCell(used, actions) {
  if (!used.action_id) return "No action: conversations";
  const action = actions.data.find((one) => one.action_id === used.action_id);
  if (action) return h("a", { href: `#/actions/${action.action_id}` }, action.title);
  return actions.complete ? "A deleted action" : h("a", { href: `#/actions/${used.action_id}` }, used.action_id);
}

function usedTable(title, list, cell) {
  if (list.length === 0) return null;
  const sorted = [...list].sort((one, other) => other.cost_micros - one.cost_micros || other.calls - one.calls);
  return section(
    title,
    {},
    h(
      "table",
      { class: "figures" },
      h("caption", { class: "vh" }, title),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, title.slice(3).replace(/^./, (first) => first.toUpperCase())), h("th", { scope: "col" }, "Calls"), h("th", { scope: "col", class: "roomy" }, "Tokens read"), h("th", { scope: "col", class: "roomy" }, "from a cache"), h("th", { scope: "col", class: "roomy" }, "written"), h("th", { scope: "col" }, "Cost"))),
      h(
        "tbody",
        {},
        sorted.map((used) =>
          h(
            "tr",
            { key: `${used.agent_id ?? used.action_id ?? used.provider ?? ""} ${used.model ?? ""}` },
            h("th", { scope: "row" }, cell(used)),
            h("td", {}, figure(used.calls)),
            h("td", { class: "roomy" }, figure(tokensIn(used))),
            h("td", { class: "roomy" }, tokensIn(used) > 0 ? `${Math.round((100 * used.cache_read_tokens) / tokensIn(used))} %` : "–"),
            h("td", { class: "roomy" }, figure(used.output_tokens)),
            h("td", {}, money(used.cost_micros)),
          ),
        ),
      ),
    ),
  );
}
