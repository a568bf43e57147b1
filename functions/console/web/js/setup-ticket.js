// The ticket of a setup: who, what, when, what it cannot do, what it costs and where it is told, with one press that creates and approves both.

import { del, post } from "./api.js";
import { flash } from "./app.js";
import { budgetText, monthText } from "./changes.js";
import { channelKindName } from "./notices.js";
import { button, facts, failureOf, field, press } from "./parts.js";
import { grantTexts, stub } from "./ticket.js";
import { moment } from "./format.js";
import { h } from "./view.js";

const TICKET_AFTER_MS = 250;

/** The fields of the action, as parts of the draft. */
export const ACTION_PARTS = [
  { name: "action_title", label: "Does", most: 200, rows: 1, of: (action) => action.title },
  { name: "action_instructions", label: "How", most: 20_000, rows: 3, of: (action) => action.task_config.instructions },
  { name: "action_expected", label: "You get", most: 5000, rows: 2, of: (action) => action.task_config.expected_output },
];

/** What the model has proposed, with the fields of the action as parts. */
export function withParts(proposed) {
  const { first_action: action } = proposed;
  if (!action) return { ...proposed };
  return { ...proposed, ...Object.fromEntries(ACTION_PARTS.map(({ name, of }) => [name, of(action)])) };
}

const agentOf = (draft, parts) => Object.fromEntries(parts.map(({ name }) => [name, (draft.mine[name] ?? "").trim()]).filter(([, text]) => text !== ""));

function setupOf(draft, parts) {
  const { mine, base } = draft;
  const { schedule, description, priority, conditions } = base.first_action;
  const text = (name) => (mine[name] ?? "").trim();
  const action = { title: text("action_title"), task_config: { instructions: text("action_instructions"), expected_output: text("action_expected") } };
  for (const [name, value] of Object.entries({ schedule, description, priority, conditions })) if (value) action[name] = value;
  return { agent: agentOf(draft, parts), action };
}

/** Reads what would be created, soon after the last change. */
function previewTicketSoon(ctx, setup, needs) {
  const key = JSON.stringify([setup, needs]);
  const state = (ctx.state.ticket ??= {});
  if (state.key === key) return state;
  clearTimeout(state.timer);
  state.key = key;
  state.waits = true;
  state.timer = setTimeout(async () => {
    const answer = await post("/setup/preview", { ...setup, needs }).then(
      (view) => ({ view, error: null }),
      (error) => ({ view: null, error }),
    );
    if (ctx.state.ticket.key !== key || ctx.signal.aborted) return;
    Object.assign(state, answer, { waits: false });
    ctx.redraw();
  }, TICKET_AFTER_MS);
  return state;
}

/**
 * The channel that a person names in one line: an e-mail address, the address of a webhook or of a topic of ntfy.sh, or the token of a Telegram bot and a chat.
 * Null if it is none of them.
 */
export function channelOf(text) {
  const said = text.trim();
  const telegram = /^(\d+:[\w-]+)\s+(@?[\w-]+)$/.exec(said);
  if (telegram) return { kind: "telegram", token: telegram[1], chat_id: telegram[2] };
  if (/^[^\s@/]+@[^\s@/]+$/.test(said)) return { kind: "email", to: said };
  const url = /^https?:/.test(said) && URL.canParse(said) ? new URL(said) : null;
  if (!url || /\s/.test(said)) return null;
  const path = url.pathname;
  if (url.hostname === "ntfy.sh" && /^\/[\w-]{1,64}$/.test(path)) return { kind: "ntfy", url: url.origin, topic: path.slice(1) };
  if (url.hostname === "hooks.slack.com") return { kind: "slack", url: said };
  if (["discord.com", "discordapp.com"].includes(url.hostname) && path.startsWith("/api/webhooks/")) return { kind: "discord", url: said };
  return { kind: "webhook", url: said };
}

const CHANNEL = "setup channel";

function toldAt(ctx, view, channels) {
  if (!view) return null;
  const isThere = channels ? channels.data.length > 0 : view.told.channels.length > 0;
  if (isThere) return h("p", {}, view.told.channels.length > 0 || !channels ? view.told.text : "Your channel is not confirmed or is switched off: see Notices.");
  const text = ctx.state.channel ?? "";
  const found = channelOf(text);
  const hint = text.trim() === "" ? "An e-mail address, the address of a webhook (Slack, Discord or your own) or of a topic of ntfy.sh, or a Telegram bot’s token and a chat. Left empty: results wait here." : found?.kind === "email" && channels?.emails === "stored" ? "This platform sends no e-mail: it shows each message under Outbox." : found ? `${channelKindName(found.kind)}. It is added when you press the button.` : "This is no e-mail address, no address that begins with https, and no token and chat.";
  return field(
    "Tell me at",
    h("input", {
      name: "channel",
      type: "text",
      maxlength: "2000",
      autocomplete: "off",
      spellcheck: "false",
      value: text,
      "aria-invalid": text.trim() !== "" && !found ? "true" : null,
      oninput: (event) => {
        ctx.forgive(CHANNEL);
        ctx.state.channel = event.target.value;
        ctx.redraw();
      },
    }),
    { hint },
  );
}

/** `part`: draws one part of the draft. `parts`: those of the agent. `done(made)` is called when both are created. */
export function setupTicket(ctx, draft, { parts, part, channels, done }) {
  const setup = setupOf(draft, parts);
  const { view, error, waits } = previewTicketSoon(ctx, setup, draft.base.needs ?? []);
  const [next] = view?.fire_times ?? [];
  const text = (ctx.state.channel ?? "").trim();
  const isClear = text === "" || channelOf(text);
  return [
    h(
      "article",
      { class: "ticket draft setup-ticket", key: "ticket", "aria-label": "Ticket of the first action" },
      stub(next, view && Boolean(view.current.schedule), view?.schedule_text, (view?.fire_times ?? []).slice(1).map((at) => h("div", { key: at }, moment(at)))),
      h(
        "div",
        { class: "body" },
        ACTION_PARTS.map(part),
        view &&
          facts([
            ["May use", grantTexts(view.current).join("; ") || "nothing beside its own notes and outputs"],
            ["May cost", budgetText(view.current.budget)],
            ["A month", monthText(view.expected_cost)],
          ]),
        view?.cannot.length > 0 && h("ul", { class: "warnings", "aria-label": "What it cannot do" }, view.cannot.map((one) => h("li", { key: one }, one))),
        toldAt(ctx, view, channels),
        failureOf(ctx, CHANNEL),
      ),
    ),
    h("details", { class: "ticket-details", key: "agent" }, h("summary", {}, `The agent: ${draft.mine.name ?? ""}`), parts.map(part)),
    h(
      "div",
      { class: "make", key: "make" },
      h("p", { class: "muted" }, view?.current.schedule ? "One press creates the agent and approves this action, as it stands here." : "One press creates the agent and the action. It runs when you run it."),
      error && h("p", { class: "bad", role: "alert" }, error.message),
      failureOf(ctx, "create"),
      h(
        "div",
        { class: "acts" },
        h(
          "div",
          { class: "end" },
          press("Change the time", () => toComposer("Say another time, such as “at 8 instead”"), { kind: "quiet" }),
          button(ctx, view?.current.schedule ? "Create and start" : "Create it", {
            key: "create",
            kind: "primary",
            disabled: waits || !view || !isClear,
            act: () => createBoth(ctx, setup, view, text, done),
          }),
        ),
      ),
    ),
  ];
}

function toComposer(placeholder) {
  const box = document.querySelector(".setup textarea[name=message], .setup .composer textarea");
  box.placeholder = placeholder;
  box.focus();
}

async function createBoth(ctx, setup, view, text, done) {
  // The channel comes first: if it is refused, nothing was created.
  const channel = text && channelOf(text);
  if (channel && !ctx.state.channelMade) {
    await post("/notifications/channels", channel);
    ctx.state.channelMade = true;
  }
  const made = await post("/setup", { ...setup, approval_hash: view.approval_hash, tell: "at_once" });
  const { agent, action } = made;
  done(made);
  ctx.go(`#/actions/${action.action_id}`);
  const runs = action.next_due ? `It runs ${moment(action.next_due)}.` : "It runs when you run it.";
  flash(`Created. ${runs}`, {
    label: "Undo",
    act: async () => {
      await del(`/agents/${agent.agent_id}`);
      flash(`Undone. “${agent.name}” is deleted.`);
      ctx.go("#/");
    },
  });
}
