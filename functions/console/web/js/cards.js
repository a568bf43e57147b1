// What waits for a person, as cards that are answered in place.

import { del, get, post } from "./api.js";
import { lazily } from "./app.js";
import { asText, changeView, fieldName } from "./changes.js";
import { bytes, capital, counted, listed, money, moment, spaced } from "./format.js";
import { button, confirmation, dialog, dialogActs, draftOf, facts, failureOf, field, isStopped, press } from "./parts.js";
import { rememberOutcome } from "./outcomes.js";
import { lacksList, lacksOf, readOutputs } from "./outputs.js";
import { stoppedNote } from "./stop.js";
import { ticket } from "./ticket.js";
import { h } from "./view.js";

/** The texts that people have begun to write in cards, by the card. */
const answers = new Map();

function answerField(ctx, key, placeholder) {
  const draft = draftOf(key);
  if (!answers.has(key)) answers.set(key, draft.get());
  return h("textarea", {
    rows: "2",
    "aria-label": placeholder,
    placeholder,
    maxlength: "32000",
    value: answers.get(key),
    oninput: (event) => {
      answers.set(key, event.target.value);
      draft.set(event.target.value);
      ctx.redraw();
    },
  });
}

function answered(key) {
  answers.delete(key);
  draftOf(key).set("");
}

/** A question that a run has asked. */
export function questionCard(ctx, item) {
  const key = `question ${item.run_id ?? item.id}`;
  const reply = (message) => post(`/actions/${item.action_id}/resume`, { message }).then(() => answered(key));
  const text = answers.get(key) ?? "";
  return h(
    "article",
    { class: "ask", key, "aria-label": `${item.action_title ?? item.title} asks` },
    h("span", { class: "muted" }, h("a", { href: `#/actions/${item.action_id}` }, item.action_title ?? item.title), ` asks · ${moment(item.at)}`),
    h("q", {}, item.text),
    h("div", { class: "quick" }, (item.choices ?? []).map((choice) => button(ctx, choice, { key: `${key} ${choice}`, starts: true, act: () => reply(choice) }))),
    answerField(ctx, key, "Answer in words…"),
    failureOf(ctx, key),
    stoppedNote(ctx, "the run goes on when you have started again"),
    h("div", { class: "acts" }, h("div", { class: "end" }, button(ctx, "Answer", { key, kind: "primary", starts: true, disabled: text.trim() === "", act: () => reply(text.trim()) }))),
  );
}

/** A call of a tool that needs a yes, or whose outcome is unknown, or a ceiling of costs. `item.run_id` and `item.call_id` name it. */
export function callCard(ctx, item) {
  const path = `/runs/${item.run_id}/calls/${item.call_id}`;
  const key = `call ${item.run_id} ${item.call_id}`;
  if (item.asks === "outcome") {
    return h(
      "article",
      { class: "ask", key, "aria-label": `Did ${item.tool} happen?` },
      cardOrigin(item),
      h("q", {}, `The call of ${item.tool} was begun, and its answer was lost. Did it happen?`),
      callFacts(item),
      failureOf(ctx, key),
      stoppedNote(ctx, "the run goes on when you have started again"),
      h(
        "div",
        { class: "acts" },
        button(ctx, "It did not happen: do it again", { key: `${key} no`, starts: true, act: () => post(`${path}/resolve`, { outcome: "not_happened" }) }),
        h("div", { class: "end" }, button(ctx, "It happened", { key, kind: "primary", starts: true, act: () => post(`${path}/resolve`, { outcome: "happened" }) })),
      ),
    );
  }
  if (item.asks === "ceiling") {
    const { ceiling } = item;
    return h(
      "article",
      { class: "ask", key, "aria-label": "A ceiling of costs is reached" },
      cardOrigin(item),
      h("q", {}, `The ceiling of ${CEILINGS[ceiling.of] ?? spaced(ceiling.of)} is reached: ${money(ceiling.limit_micros + ceiling.raised_micros)}. The next step may cost ${money(ceiling.needs_micros)}.`),
      failureOf(ctx, key),
      stoppedNote(ctx, "the run goes on when you have started again"),
      h(
        "div",
        { class: "acts" },
        press("End the run", () => reject(ctx, item), { disabled: isStopped(ctx) }),
        h("div", { class: "end" }, button(ctx, `Raise it by ${money(ceiling.raise_by_micros)}`, { key, kind: "primary", starts: true, act: () => post(`${path}/approve`, { hash: item.hash }) })),
      ),
    );
  }
  return h(
    "article",
    { class: "ask", key, "aria-label": `May ${item.tool} be called?` },
    cardOrigin(item),
    h("q", {}, `May it call ${item.tool}?`),
    h("p", { class: "muted" }, item.why),
    callFacts(item),
    failureOf(ctx, key),
    stoppedNote(ctx, "the run goes on when you have started again"),
    h(
      "div",
      { class: "acts" },
      press("Do not allow", () => reject(ctx, item), { disabled: isStopped(ctx) }),
      h("div", { class: "end" }, button(ctx, `Allow ${item.tool} once`, { key, kind: "primary", starts: true, act: () => post(`${path}/approve`, { hash: item.hash }) })),
    ),
  );
}

const CEILINGS = { run: "this run", action_month: "this action’s month", agent_month: "this agent’s month", day: "the day", month: "the month" };

function cardOrigin(item) {
  const name = item.action_title ?? item.agent_name ?? "A run";
  const href = item.action_id ? `#/actions/${item.action_id}` : `#/runs/${item.run_id}`;
  return h("span", { class: "muted" }, h("a", { href }, name), ` · ${moment(item.asked_at ?? item.at)}${item.expires_at ? ` · until ${moment(item.expires_at)}` : ""}`);
}

function callFacts(item) {
  const entries = Object.entries(item.arguments ?? {}).map(([name, value]) => [name, h("p", { class: "long" }, asText(value))]);
  return [facts(entries), item.cost_micros > 0 && h("p", { class: "muted" }, `It costs about ${money(item.cost_micros)}.`)];
}

function reject(ctx, item) {
  const key = `reject ${item.call_id}`;
  let reason = "";
  ctx.open(() =>
    dialog(
      { title: item.asks === "ceiling" ? "End the run?" : "Do not allow this call?", onclose: () => ctx.close() },
      h("p", {}, item.asks === "ceiling" ? "The run fails, and keeps what it has saved." : "The call is not made. The agent is told why, and goes on without it."),
      h("label", { class: "field" }, h("span", {}, "Reason, if you like"), h("textarea", { rows: "2", maxlength: "1000", oninput: (event) => { reason = event.target.value; } })),
      failureOf(ctx, key),
      dialogActs(
        ctx,
        button(ctx, item.asks === "ceiling" ? "End the run" : "Do not allow", {
          key,
          kind: "halt",
          act: async () => {
            await post(`/runs/${item.run_id}/calls/${item.call_id}/reject`, reason.trim() ? { reason: reason.trim() } : {});
            ctx.close();
          },
        }),
      ),
    ),
  );
}

const ASSET_KINDS = { document: "document", code: "code", prompt: "prompt", email: "e-mail" };

/** What lists leave out of a draft: what is proposed for an action and the action as it is, or the times of a proposed action. */
function wholeDraft(proposal) {
  const { proposal_id: id, action_id: actionId } = proposal;
  if (!actionId && proposal.schedule_text !== undefined && proposal.task_config) return proposal;
  return lazily(`draft ${id}`, async () => {
    // What would be approved with a change is only in the proposal itself.
    const whole = proposal.task_config ? { ...proposal } : await get(`/proposals/${id}`);
    if (actionId) whole.before = await get(`/actions/${actionId}`);
    return whole;
  });
}

/** What a proposed command is called on its card, and what becomes of the action. */
const PROPOSED_COMMANDS = {
  pause: ["Pause", "It does not run until you resume it."],
  resume: ["Resume", "It runs again at its times."],
  run_now: ["Run now", "It runs once, now. Its times stay."],
  rehearse: ["Rehearse", "It is tried now: you see what it would do, and nothing is done."],
  dismiss: ["Dismiss", "It never runs again. Its runs and its history stay."],
};
const COMMAND_DONE = { pause: "paused", resume: "resumed", run_now: "ran", rehearse: "rehearsed", dismiss: "dismissed" };

/** A command that an agent proposes for an action: one button does it. */
function commandCard(ctx, proposal) {
  const id = proposal.proposal_id;
  const key = `proposal ${id}`;
  const whole = wholeDraft(proposal);
  const command = proposal.command ?? whole?.command;
  const [verb, consequence] = PROPOSED_COMMANDS[command] ?? ["Accept", proposal.description];
  const title = whole?.before?.title ?? proposal.title;
  const next = command === "pause" && whole?.before?.next_due;
  const starts = command === "run_now" || command === "rehearse";
  return h(
    "article",
    { class: "card draft", key, "aria-label": `Proposed: ${verb} ${title}` },
    h("span", { class: "kind" }, "Proposed for an action"),
    h("h3", {}, `${verb} “${title}”`),
    h("p", {}, consequence, next && ` Next due: ${moment(next)}.`),
    failureOf(ctx, key),
    starts && stoppedNote(ctx, "it cannot run now"),
    h(
      "div",
      { class: "acts" },
      press("Delete", () => discard(ctx, proposal)),
      h(
        "div",
        { class: "end" },
        h("a", { class: "btn", href: `#/actions/${proposal.action_id}` }, "Look closer"),
        button(ctx, verb, {
          key,
          kind: "primary",
          starts,
          disabled: !command,
          act: async () => {
            const done = await post(`/proposals/${id}/accept`, {});
            rememberOutcome({ ...proposal, title }, COMMAND_DONE[command], proposal.action_id, done.run_id);
          },
        }),
      ),
    ),
  );
}

/** A draft that an agent has made: an asset, a new action, or a change of an action. `reader` shows the content of an asset. */
export function proposalCard(ctx, proposal, { reader = plainReader } = {}) {
  if (proposal.kind === "command") return commandCard(ctx, proposal);
  const id = proposal.proposal_id;
  const key = `proposal ${id}`;
  const isAsset = proposal.kind === "asset";
  const isChange = !isAsset && proposal.action_id;
  // A dialog stays open while it is read.
  const wholeNow = () => (isAsset ? null : wholeDraft(proposal));
  const whole = wholeNow();
  const keepIt = async () => {
    if (isAsset) {
      const asset = await post(`/agents/${proposal.agent_id}/assets`, { proposal_id: id });
      rememberOutcome({ ...proposal, title: asset.title }, "saved", asset.asset_id);
    } else if (isChange) {
      const title = answers.get(titleKey(id))?.trim();
      const hash = wholeNow()?.approval_hash;
      const { action } = await post(`/proposals/${id}/accept`, { ...(hash && { approval_hash: hash }), ...(title && { title }) });
      answered(titleKey(id));
      rememberOutcome({ ...proposal, title: action.title }, "changed", action.action_id);
      // Its ticket is on its page.
      if (action.approval?.hash !== action.approval_hash) ctx.go(`#/actions/${proposal.action_id}`);
    } else {
      const action = await post(`/agents/${proposal.agent_id}/actions`, { proposal_id: id });
      rememberOutcome({ ...proposal, title: action.title }, "defined", action.action_id);
      ctx.go(`#/actions/${action.action_id}`);
    }
  };
  const label = isAsset ? "Save" : isChange ? "Change it" : "Add action…";
  const kind = isAsset ? `Proposed ${ASSET_KINDS[proposal.asset_type] ?? "asset"}` : isChange ? "Proposed change of an action" : "Draft action";
  const actions = (inDialog) =>
    h(
      "div",
      { class: "acts" },
      press("Delete", () => discard(ctx, proposal)),
      h("div", { class: "end" }, !inDialog && press("Read", () => openProposal(ctx, proposal, reader, actions), {}), button(ctx, label, { key, kind: "primary", disabled: Boolean(isChange && !wholeNow()), act: () => keepIt().then(() => inDialog && ctx.close()) })),
    );
  return h(
    "article",
    // Its button "Read" does the same for the keyboard.
    { class: `card ${isAsset ? "asset" : "draft"}`, key, "aria-label": `${kind}: ${proposal.title}`, onclick: (event) => isOnText(event) && openProposal(ctx, proposal, reader, actions) },
    h("span", { class: "kind" }, kind),
    h("h3", {}, proposal.title || fieldsOf(proposal)),
    proposal.description && !isChange && h("p", { class: "muted clamp" }, proposal.description),
    isChange ? changeInShort(ctx, id, whole) : !isAsset && whole && h("p", {}, whole.schedule_text ?? "It runs when you run it."),
    failureOf(ctx, key),
    actions(false),
  );
}

/** Whether a click on a card is meant for the card: not for something in it that has its own effect, and not the end of a selection. */
const isOnText = (event) => !event.target.closest("a, button, input, textarea, select, label, summary") && String(getSelection()) === "";

const fieldsOf = (proposal) => Object.keys(proposal.change ?? {}).map((name) => capital(spaced(name))).join(", ");

/** Titles often name a time. */
const NAMES_A_TIME = /\b(every|daily|weekly|monthly|hourly|(mon|tues|wednes|thurs|fri|satur|sun)days?|morning|noon|evening|night)\b|\b\d{1,2}(:\d\d|\s?[ap]m)\b/i;

const titleKey = (id) => `title of ${id}`;

/** A title that names a time may be wrong after the change. The person may give another one with it. */
function titleField(ctx, id, title) {
  const key = titleKey(id);
  return field(
    "Title",
    h("input", {
      type: "text",
      maxlength: "200",
      autocomplete: "off",
      value: answers.get(key) ?? title,
      oninput: (event) => {
        answers.set(key, event.target.value);
        ctx.redraw();
      },
    }),
    { hint: "It names a time. Change it here, if it is no longer true." },
  );
}

/** What a proposed change does: its schedule in words, and what else it touches. */
function changeInShort(ctx, id, whole) {
  if (!whole?.change) return whole === undefined && h("p", { class: "muted" }, "Reading…");
  const { schedule, ...others } = flatten(whole.change);
  const names = Object.keys(others).map(fieldName);
  const title = whole.change.title ?? whole.before?.title;
  return [
    schedule && changeView(ctx, "schedule", whole.before ? (whole.before.schedule ?? null) : undefined, schedule),
    names.length > 0 && h("p", { class: "muted" }, `${schedule ? "It also changes" : "It changes"}: ${listed(names)}.`),
    schedule && title && NAMES_A_TIME.test(title) && titleField(ctx, id, title),
    h("p", { class: "muted" }, whole.approval_hash ? "It stays approved." : "It then waits for your approval."),
  ];
}

/** Reads the whole proposal, because lists leave the content out. */
async function openProposal(ctx, proposal, reader, actions) {
  let whole = null;
  let error = null;
  ctx.open(() =>
    dialog(
      { title: proposal.title || "Proposed change", kind: "wide", onclose: () => ctx.close() },
      error ? h("p", { class: "bad", role: "alert" }, error.message) : !whole ? h("p", { class: "muted" }, "Reading…") : proposalBody(ctx, whole, reader),
      whole && earlierDrafts(ctx, whole, reader),
      failureOf(ctx, `proposal ${proposal.proposal_id}`),
      actions(true),
    ),
  );
  try {
    whole = await get(`/proposals/${proposal.proposal_id}`);
    if (whole.action_id) whole.before = await get(`/actions/${whole.action_id}`).catch(() => null);
  } catch (failure) {
    error = failure;
  }
  ctx.redraw();
}

/** The drafts that this one has replaced, or that it was replaced. */
function earlierDrafts(ctx, proposal, reader) {
  if (proposal.superseded_by) return h("p", { class: "muted" }, "A newer draft has replaced this one.");
  const earlier = proposal.replaces ?? [];
  if (earlier.length === 0) return null;
  const read = (id, at) => press(`Earlier draft ${at + 1}`, () => openProposal(ctx, { proposal_id: id, title: `${proposal.title}, draft ${at + 1}` }, reader, () => null), { kind: "quiet" });
  return h("details", { class: "step", key: "earlier" }, h("summary", {}, `It replaces ${counted(earlier.length, "earlier draft")}`), h("div", { class: "quick" }, earlier.map(read)));
}

function proposalBody(ctx, proposal, reader) {
  if (proposal.kind === "asset") return [h("p", { class: "muted" }, `${ASSET_KINDS[proposal.asset_type]} · ${bytes(proposal.bytes ?? 0)}`), reader(proposal.content ?? "", proposal.asset_type)];
  if (proposal.change) {
    const before = proposal.before && flatten(proposal.before);
    return Object.entries(flatten(proposal.change)).map(([name, value]) => h("div", { class: "change", key: name }, h("h3", {}, fieldName(name)), changeView(ctx, name, before ? (before[name] ?? null) : name === "schedule" ? undefined : "", value)));
  }
  return facts([
    ["When", proposal.schedule_text ?? "no schedule yet"],
    ["Will", h("p", { class: "long" }, proposal.task_config?.instructions ?? "")],
    ["Expected", proposal.task_config?.expected_output],
    ["Priority", proposal.priority],
  ]);
}

function flatten(change) {
  const { task_config: task, ...rest } = change;
  const flat = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== undefined));
  for (const [name, value] of Object.entries(task ?? {})) if (value !== null && value !== undefined) flat[`task_config.${name}`] = value;
  return flat;
}

const plainReader = (content) => h("pre", { class: "reader" }, content);

function discard(ctx, proposal) {
  confirmation(ctx, {
    title: "Delete this draft?",
    key: `discard ${proposal.proposal_id}`,
    label: "Delete",
    text: `“${proposal.title || "The proposed change"}” is deleted. The conversation stays.`,
    act: async () => {
      await del(`/proposals/${proposal.proposal_id}`);
      rememberOutcome(proposal, "deleted");
    },
  });
}

const NOTICES = {
  failed: ["bad", "failed"],
  missed: ["bad", "was missed"],
  held: ["warn", "is held"],
  preflight: ["warn", "will fail unless this is mended"],
  unknown: ["warn", "has an unknown outcome"],
};

/** Something that went wrong or will: one sentence, and the way to it. */
export function noticeCard(ctx, item) {
  const [tone, says] = NOTICES[item.kind] ?? ["warn", spaced(item.kind)];
  const key = `notice ${item.kind} ${item.id}`;
  const lacks = item.kind === "failed" && !item.paused_because ? lacksOf(item.error_code, item.reason) : null;
  return h(
    "article",
    { class: `notice ${tone}`, key, "aria-label": `${item.action_title ?? item.title} ${says}` },
    h("p", {}, h("a", { href: `#/actions/${item.action_id}` }, h("b", {}, item.action_title ?? item.title)), ` ${says}`, item.at && h("span", { class: "muted" }, ` · ${moment(item.at)}`)),
    lacks ? [h("p", {}, item.error_code === "output_rejected" ? "Its output is saved, but the check did not accept it:" : "Its output is saved, but lacks what a program checks:"), lacksList(lacks)] : item.text && h("p", {}, item.text),
    failureOf(ctx, key),
    ["failed", "missed"].includes(item.kind) && !item.paused_because && stoppedNote(ctx, "it cannot run now"),
    h(
      "div",
      { class: "acts" },
      h(
        "div",
        { class: "end" },
        lacks && item.run_id && press("Read the output", () => readOutputs(ctx, item.action_title ?? item.title, item.action_id, item.run_id)),
        item.run_id && h("a", { class: "btn", href: `#/runs/${item.run_id}` }, "See the run"),
        item.paused_because ? button(ctx, "Resume", { key, act: () => post(`/actions/${item.action_id}/resume`, {}) }) : ["failed", "missed"].includes(item.kind) && button(ctx, "Run now", { key, starts: true, act: () => post(`/actions/${item.action_id}/run`, {}) }),
      ),
    ),
  );
}

/** The card of an item of the inbox. `more` has what was read besides: approvals and proposals by their ids. */
export function inboxCard(ctx, item, more, options) {
  switch (item.kind) {
    case "approval": {
      const view = more.approvals[item.action_id];
      if (!view) return h("article", { class: "ticket waiting", key: `ticket ${item.action_id}` }, h("div", { class: "body" }, h("h3", {}, item.action_title ?? item.title)));
      return ticket(ctx, { actionId: item.action_id, title: item.action_title ?? item.title, agent: item.agent_name, view, nextAt: item.next_at, scheduleText: item.schedule_text });
    }
    case "proposal":
      return proposalCard(ctx, { proposal_id: item.proposal_id ?? item.id, kind: item.proposal_kind, title: item.title, description: item.text, agent_id: item.agent_id, action_id: item.action_id, asset_type: item.asset_type, run_id: item.run_id }, options);
    case "question":
      return questionCard(ctx, item);
    case "call":
    case "ceiling":
      return callCard(ctx, item);
    case "unknown":
      return item.call_id ? callCard(ctx, { ...item, asks: "outcome" }) : noticeCard(ctx, item);
    default:
      return noticeCard(ctx, item);
  }
}
