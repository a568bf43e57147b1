// A run: what came of it, step by step, and what it has made.

import { Problem, get, orNull, post } from "./api.js";
import { LIVE_MS, RESTING_MS, cached, optional, reading } from "./app.js";
import { occurrenceHref, occurrenceName } from "./action-grid.js";
import { openText, rehearse } from "./action-rehearsal.js";
import { plainTimes, questionOf } from "./action.js";
import { conditionText, scheduleWords } from "./changes.js";
import { callCard, proposalCard, questionCard } from "./cards.js";
import { bytes, capital, clock, counted, dayMonth, duration, figure, helperName, money, moment, weekday, wholeTime } from "./format.js";
import { agentName } from "./frame.js";
import { agentOff, button, chip, facts, failureOf, head, lamp, link, mayRun, press, problem, row, rows, section, stateWord } from "./parts.js";
import { markdownView } from "./markdown.js";
import { knewView } from "./memory-facts.js";
import { TAINT_WORDS, lacksList, lacksOf, readOutput } from "./outputs.js";
import { runEvents, stepsOfRun, waterfall } from "./run-events.js";
import { stoppedNote } from "./stop.js";
import { h } from "./view.js";

const OTHER_RUNS = 20;
/** The others are in the list of outputs. */
const MOST_TO_READ = 3;

/** The run, and for a run of an action its due time. A due time at which no run began is found by its action alone. */
async function readWholeRun(runId, actionId, signal) {
  const run = await get(`/runs/${runId}`, signal).catch(orNull);
  const owner = run?.kind === "action" ? run.action_id : run ? null : actionId;
  const occurrence = owner ? await get(`/actions/${owner}/runs/${runId}`, signal).catch(orNull) : null;
  if (!run && !occurrence) throw new Problem(404, { detail: "There is no such run.", code: "not_found" }, null);
  return { run, occurrence };
}

const runKey = (ctx) => `/runs/${ctx.params.run_id} with its due time`;

const isUnderWay = ({ run, occurrence }) => run?.state === "running" || ["due", "claimed", "running"].includes(occurrence?.state);

export const runPage = {
  nav: "agents",
  title: (ctx) => ctx.data.action?.title ?? { chat: "A turn", setup: "A turn of the setup", theme: "A turn about a theme", helper: "A part of a turn", rehearsal: "A rehearsal" }[ctx.data.whole.run?.kind] ?? "A run",
  reads(ctx) {
    const runId = ctx.params.run_id;
    const known = cached(runKey(ctx));
    const actionId = known?.run?.action_id ?? known?.occurrence?.action_id;
    return {
      whole: reading(runKey(ctx), (signal) => readWholeRun(runId, /^act_[0-9a-f]{32}$/.test(ctx.query.action ?? "") ? ctx.query.action : null, signal)),
      ...(actionId && { action: optional(`/actions/${actionId}`), others: reading(`/actions/${actionId}/runs newest`, (signal) => get(`/actions/${actionId}/runs?limit=${OTHER_RUNS}`, signal).catch((error) => (error.status === 404 ? { data: [] } : Promise.reject(error)))) }),
      ...(known?.occurrence && known.run && { outputs: reading(`/runs/${runId} outputs`, (signal) => get(`/actions/${known.occurrence.action_id}/runs/${runId}/outputs`, signal)) }),
    };
  },
  every: (ctx) => (ctx.data.whole && isUnderWay(ctx.data.whole) ? LIVE_MS : RESTING_MS),
  view(ctx) {
    const { whole, action, others, outputs } = ctx.data;
    const { run, occurrence } = whole;
    const runId = ctx.params.run_id;
    const stream = run && runEvents(ctx, runId, run.state);
    const steps = run && stepsSoFar(stream, run.kind);
    const isLive = isUnderWay(whole);
    const question = action && questionOf(action, occurrence);
    const cards = (run?.cards ?? []).filter((card) => card.state === "waiting");
    return h(
      "div",
      { key: `run ${runId}` },
      runCrumb(ctx, run, action),
      runHead(ctx, whole, action, isLive),
      action && !isLive && stoppedNote(ctx, "it cannot run again"),
      h("p", { class: "verdict" }, runVerdict(whole, outputs, isLive)),
      !isLive && toldView(occurrence?.told),
      !isLive && outputs?.data.length > 0 && h("div", { class: "quick to-read", key: "to read" }, outputs.data.slice(0, MOST_TO_READ).map((output) => press(outputs.data.length === 1 ? "Read the output" : `Read “${output.title}”`, () => readOutput(ctx, output), { key: output.asset_id, kind: "primary" }))),
      run?.error && h("p", { class: "advice" }, adviceFor(run.error, action)),
      others && others.data.length > 1 && otherRuns(others.data, runId, ctx),
      ["run again", "cancel run", "rehearse"].map((key) => ctx.failure(key) && h("div", { key: `failed ${key}` }, failureOf(ctx, key))),
      run &&
        h(
          "div",
          { class: "cols" },
          h(
            "div",
            {},
            (question || cards.length > 0) && section("Waits for you", {}, question && questionCard(ctx, question), cards.map((card) => callCard(ctx, { ...card, run_id: runId, action_id: run.action_id, action_title: action?.title, agent_name: agentName(ctx, run.agent_id) }))),
            section(
              "What happened",
              { note: [steps.from && duration(Math.max(0, (isLive ? Date.now() : steps.to) - steps.from)), run.cost_micros > 0 && money(run.cost_micros), run.helpers_micros > 0 && `${money(run.helpers_micros)} for helpers`].filter(Boolean).join(" · ") || null },
              stream.error && problem(ctx, stream.error, { compact: true }),
              stream.events.length === 0 && !stream.ended ? h("p", { class: "muted pad" }, "Reading the steps…") : waterfall(steps, { isLive }),
            ),
            run.message && run.kind !== "action" && section("It said", {}, h("div", { class: "pad" }, markdownView(run.message))),
            answeredCards(run),
            run.recalled?.length > 0 && h("div", { class: "pad", key: "knew" }, knewView(ctx, run.recalled)),
          ),
          h("div", {}, callSection(run), outputSection(ctx, run, outputs), changedSection(run), checkSection(whole, action), run.proposals.length > 0 && section("Proposals", { note: run.proposals.length }, run.proposals.map((proposal) => proposalCard(ctx, proposal))), sourceSection(run), runFacts(run, occurrence)),
        ),
    );
  },
};

/** What a run of an action has changed in a theme. */
function changedSection(run) {
  if (!run.changed) return null;
  const { project_id: projectId, change_set_id: id, files, more, is_applied: isApplied } = run.changed;
  return section(
    "Changes of the theme",
    { note: isApplied ? "applied" : "not applied when the run ended" },
    h(
      "div",
      { class: "pad" },
      h("ul", { class: "plain paths" }, files.map((one) => h("li", { key: one.path }, h("code", {}, one.path), " ", h("span", { class: "ok" }, `+${figure(one.added)}`), " ", h("span", { class: "bad" }, `−${figure(one.removed)}`))), more > 0 && h("li", { key: "more", class: "muted" }, `and ${counted(more, "more file")}`)),
      h("div", { class: "acts" }, link(isApplied ? "Look at the changes" : "Look at the changes and apply them", `#/themes/${encodeURIComponent(projectId)}/changes?set=${encodeURIComponent(id)}`, { kind: isApplied ? "" : "primary" })),
    ),
  );
}

/** Whether the person was told, and where; or why not. */
function toldView(told) {
  if (!told) return null;
  const failed = told.deliveries.some((delivery) => delivery.state === "undelivered");
  return h(
    "p",
    { class: failed || told.state === "no_channel" ? "told warn" : "told muted", key: "told" },
    told.sentence,
    told.state === "no_channel" && [" ", h("a", { href: "#/notices" }, "Say where to tell you")],
    told.state === "off" && [" ", h("a", { href: "#/notices" }, "Change it")],
    failed && [" ", h("a", { href: "#/notices" }, "See the messages")],
  );
}

/** The steps, described again only when an event has come. */
function stepsSoFar(stream, kind) {
  if (stream.counted !== stream.events.length) {
    stream.counted = stream.events.length;
    stream.steps = stepsOfRun(stream.events, kind);
  }
  return stream.steps;
}

function runCrumb(ctx, run, action) {
  const agentId = run?.agent_id ?? action?.agent_id;
  if (run?.theme) return h("p", { class: "crumb" }, h("a", { href: `#/themes/${run.theme.project_id}` }, "The theme"));
  if (!agentId) return h("p", { class: "crumb" }, h("a", { href: "#/" }, "Today"));
  return h(
    "p",
    { class: "crumb" },
    h("a", { href: `#/agents/${agentId}` }, agentName(ctx, agentId) ?? "The agent"),
    action && [" · ", h("a", { href: `#/agents/${agentId}/actions` }, "Actions"), " · ", h("a", { href: `#/actions/${action.action_id}` }, action.title)],
  );
}

function chatHref(run) {
  if (run.kind === "theme") return run.chat_id && run.theme ? `#/themes/${run.theme.project_id}/chat/${run.chat_id}` : null;
  if (run.kind === "setup") return run.chat_id ? `#/setup/${run.chat_id}` : null;
  if (run.kind !== "chat") return null;
  if (run.action_id) return `#/actions/${run.action_id}/talk`;
  return run.agent_id && run.chat_id ? `#/agents/${run.agent_id}/chat/${run.chat_id}` : null;
}

const RUN_KINDS = { action: "a run", rehearsal: "a rehearsal: nothing of it was done", chat: "a turn of a chat", setup: "a turn of the setup", theme: "a turn about a theme", helper: "a part of a turn that another model does" };

function runHead(ctx, { run, occurrence }, action, isLive) {
  const runId = ctx.params.run_id;
  const isOfAction = action && (run?.kind === "action" || !run);
  const canRun = isOfAction && !isLive && mayRun(action);
  const chat = run && chatHref(run);
  return head(
    run?.kind === "rehearsal" ? `Rehearsal of ${action?.title ?? "an action"}` : run?.kind === "helper" ? helperName(run.theme?.helper?.role ?? "helper") : ["chat", "setup", "theme"].includes(run?.kind) ? "A turn" : action?.title ?? "A run",
    [RUN_KINDS[run?.kind] ?? (occurrence ? "a due time" : null), isOfAction && action.schedule_text && scheduleWords(action.schedule_text)].filter(Boolean).join(" · "),
    run?.theme?.helper && link("Open its turn", `#/runs/${run.theme.helper.turn}`, { kind: "" }),
    chat && link(run.kind === "chat" && run.action_id ? "Open the conversation" : "Open the chat", chat, { kind: "" }),
    action && !chat && link("Talk about it", `#/actions/${action.action_id}/talk`, { kind: "quiet" }),
    run?.state === "running" && button(ctx, "Cancel", { key: "cancel run", act: () => post(`/runs/${runId}/cancel`) }),
    run?.kind === "rehearsal" && run.state !== "running" && action && !agentOff(action) && button(ctx, "Rehearse again", { key: "rehearse", starts: true, act: () => rehearse(ctx, action.action_id).then(() => ctx.go(`#/actions/${action.action_id}`)) }),
    canRun &&
      button(ctx, run ? "Run again" : "Run now", {
        key: "run again",
        starts: true,
        act: async () => {
          const { run_id: next } = await post(`/actions/${action.action_id}/run`, {});
          ctx.go(`#/runs/${next}`);
        },
      }),
  );
}

// ---- The verdict ----

/** `Monday 16 Nov at 09:00:00` */
const exactTime = (at) => `${weekday(at)} ${dayMonth(at)} at ${wholeTime(at).slice(-8)}`;

function tookOf(run, occurrence) {
  const from = occurrence?.started_at ?? run?.created_at;
  const to = occurrence?.finished_at ?? run?.finished_at;
  return from && to ? duration(Math.max(0, Date.parse(to) - Date.parse(from))) : null;
}

/** Above this a run is called late. */
const LATE_MS = 60_000;

function dueWords(occurrence) {
  if (!occurrence) return null;
  if (occurrence.kind === "manual") return "by hand";
  const late = occurrence.lag_ms ?? 0;
  if (late > LATE_MS) return h("b", { class: "warn" }, `${duration(late)} late`);
  return occurrence.kind === "catch_up" ? "as a catch-up" : "on time";
}

function runVerdict({ run, occurrence }, outputs, isLive) {
  const state = occurrence?.state ?? run.state;
  const begun = occurrence?.started_at ?? run?.created_at;
  const due = occurrence && occurrence.kind !== "manual" ? exactTime(occurrence.due_at) : exactTime(begun ?? occurrence.due_at);
  const took = tookOf(run, occurrence);
  const reason = occurrence?.reason ? plainTimes(occurrence.reason).replace(/\.$/, "") : null;
  if (isLive) return [h("b", { class: "ok" }, state === "due" ? "Begins. " : "Runs now. "), begun ? `It began at ${clock(begun)}${occurrence?.lag_ms > LATE_MS ? `, ${duration(occurrence.lag_ms)} late` : ""}.` : `It is due ${moment(occurrence.due_at)}.`];
  if (!run && occurrence) {
    const many = occurrence.due_times > 1 ? `${figure(occurrence.due_times)} due times, until ${moment(occurrence.last_due_at ?? occurrence.due_at)}. ` : "";
    return [h("b", { class: state === "missed" ? "bad" : "warn" }, `${capital(stateWord(state))}. `), `It was due on ${due}. ${many}${reason ? `${capital(reason)}.` : "No run began."}`];
  }
  if (state === "waiting") return [h("b", { class: "warn" }, "Waits for you. "), `It began on ${exactTime(begun)}${reason && occurrence.reason_code !== "asked" ? `: ${reason}` : ""}.`];
  if (run?.kind === "rehearsal" && run.rehearsal) return [`Rehearsed on `, h("b", { class: "ok" }, exactTime(run.created_at)), `, took ${took}, and would have saved ${counted(run.rehearsal.outputs.length, "output")}. Nothing was done.`];
  if (["failed", "cancelled", "unknown"].includes(state)) {
    const error = run?.error?.detail ?? reason ?? "no reason was given";
    return [h("b", { class: state === "failed" ? "bad" : "warn" }, `${capital(stateWord(state))} `), `on ${exactTime(begun ?? occurrence.due_at)}${took ? ` after ${took}` : ""}: ${plainTimes(error).replace(/\.$/, "")}.`];
  }
  const made = outputs?.data.length ?? 0;
  if (!occurrence) return ["Answered on ", h("b", { class: "ok" }, due), took && `, and took ${took}`, run?.cut_off && ". The reply reached its limit and ends early", "."];
  if (state === "nothing_new") return ["Ran on ", h("b", { class: "ok" }, due), ", ", dueWords(occurrence), `, took ${took}, and found nothing new${reason ? `: ${reason}` : ""}.`];
  const isScored = occurrence.score !== null && occurrence.score !== undefined;
  const judged = occurrence.reason_code === "not_checked" ? "nobody could judge it" : isScored ? `the check gave it ${occurrence.score} of 100` : "it meets what was expected";
  return [
    "Ran on ",
    h("b", { class: "ok" }, due),
    ", ",
    dueWords(occurrence),
    took && `, took ${took}`,
    made > 0 && `, saved ${counted(made, "output")}`,
    `, and ${judged}.`,
    occurrence.reason_code === "same_as_last" && " Its outputs equal those of the run before.",
    occurrence.attempts > 1 && ` It was tried ${figure(occurrence.attempts)} times.`,
  ];
}

const RUN_ADVICE = {
  budget_exceeded: ["Raise the ceiling of a run, or make the task smaller.", "edit"],
  quota_exceeded: ["The plan includes no more requests this month.", "account"],
  condition_not_met: ["Read the output, then change the instructions or the condition.", "edit"],
  output_rejected: ["Read the output, then say more clearly what is expected.", "edit"],
  watch_failed: ["Check the address that it watches.", "edit"],
  tool_unavailable: ["Take the grant away, or choose another model.", "edit"],
  tool_loop: ["Say in the instructions when it is done.", "edit"],
  no_progress: ["Say in the instructions when it is done.", "edit"],
  too_many_steps: ["Make the task smaller.", "edit"],
  run_too_long: ["Make the task smaller.", "edit"],
  empty_output: ["Say in the instructions what it must save.", "edit"],
  drifted: ["Look at what has changed, and approve it again.", "action"],
  action_changed: ["Rehearse it again.", "action"],
  unanswered: ["It waited for you, and the time was over. Run it again.", "action"],
  effect_unknown: ["Look there whether it happened before you run it again.", "action"],
  stopped: ["Start the account again, then run it again.", "account"],
  model_key_refused: ["Store a key that the provider accepts.", "account"],
  model_not_configured: ["Store a key of a provider that has such a model.", "account"],
  model_quota: ["Add credit at the provider, or store another key.", "account"],
};

function adviceFor(error, action) {
  const [text, where] = RUN_ADVICE[error.code] ?? (error.retryable || error.code.startsWith("model_") ? ["It may succeed if you run it again.", null] : [null, null]);
  if (!text) return h("span", { class: "muted mono" }, error.code);
  const ways = { edit: action && ["Edit the action", `#/actions/${action.action_id}/edit`], action: action && ["Go to the action", `#/actions/${action.action_id}`], account: ["Go to the account", "#/account"] };
  const way = ways[where];
  return [`${text} `, way && h("a", { href: way[1] }, way[0])];
}

function otherRuns(all, runId, ctx) {
  const shown = [...all].reverse();
  return h("nav", { class: "lamps", "aria-label": "Runs of this action" }, shown.map((one) => {
    const described = lamp(one.state, occurrenceHref(one), occurrenceName(one), { fresh: ctx.state.wasLive?.has(one.run_id) && one.state === "succeeded" });
    described.key = one.run_id;
    if (["running", "claimed", "due"].includes(one.state)) (ctx.state.wasLive ??= new Set()).add(one.run_id);
    if (one.run_id === runId) described.props["aria-current"] = "page";
    return described;
  }));
}

// ---- What it made and read ----

function outputSection(ctx, run, outputs) {
  const rehearsed = run.rehearsal?.outputs;
  const made = outputs?.data ?? [];
  if (!rehearsed && (run.kind !== "action" || (made.length === 0 && ["running", "waiting"].includes(run.state)))) return null;
  return section(
    rehearsed ? "Would have saved" : "Outputs",
    { note: (rehearsed ?? made).length || null },
    (rehearsed ?? made).length === 0 && h("p", { class: "muted pad" }, "It has saved nothing."),
    rehearsed && h("ul", { class: "rows two" }, rehearsed.map((output, index) => h("li", { key: index }, h("span", { class: "what" }, output.title, h("small", {}, bytes(output.bytes))), press("Read", () => openText(ctx, output.title, output.content), { kind: "quiet" })))),
    !rehearsed && made.length > 0 && h("ul", { class: "rows two" }, made.map((output) => h("li", { key: output.asset_id }, h("span", { class: "what" }, h("a", { href: `#/assets/${output.asset_id}` }, output.title), h("small", {}, bytes(output.bytes), output.tainted && h("span", { class: "warn" }, ` · ${TAINT_WORDS}`))), press("Read", () => readOutput(ctx, output), { kind: "quiet", title: `Read ${output.title}` })))),
    rehearsed && run.rehearsal.effects.length > 0 && h("ul", { class: "rows two" }, run.rehearsal.effects.map((effect, index) => h("li", { key: `effect ${index}` }, h("span", { class: "what" }, effect.tool, h("small", {}, "was not done")), press("See", () => openText(ctx, `Call of ${effect.tool}, not done`, effect.arguments), { kind: "quiet" })))),
  );
}

/** What the check of the output said, and what it measured by. */
function checkSection({ run, occurrence }, action) {
  const score = occurrence?.score ?? run.rehearsal?.score ?? null;
  const lacks = lacksOf(run.error?.code, run.error?.detail);
  const unreadable = run.error?.code === "check_unreadable" || occurrence?.reason_code === "not_checked";
  if (score === null && !lacks && !unreadable) return null;
  const expected = action?.task_config.expected_output;
  return section(
    "The check",
    { note: score !== null ? `${score} of 100` : lacks ? "not accepted" : "without a verdict" },
    h("p", { class: "pad" }, lacks ? (run.error.code === "output_rejected" ? "A model compared the output with what is expected, and missed:" : "A program looked at the output, and missed:") : unreadable ? "The output is saved, but nobody could judge it." : "A model compared the output with what is expected, and accepted it. Of an accepted output only the score is kept."),
    lacks && lacksList(lacks),
    facts([
      ["Expected now", expected && h("p", { class: "long" }, expected)],
      ["A program checks now", (action?.conditions ?? []).length > 0 && h("ul", { class: "plain" }, action.conditions.map((one, index) => h("li", { key: index }, conditionText(one))))],
    ]),
  );
}

/** The host of an address that may be opened, or null. */
function openHost(url) {
  try {
    const { protocol, host } = new URL(url);
    return ["http:", "https:"].includes(protocol) ? host : null;
  } catch {
    return null;
  }
}

/** What a run without a model has sent, and what came back. The server has written the answers. */
function callSection(run) {
  if (!run.call) return null;
  const tries = run.call.tries;
  return section(
    "The call",
    { note: counted(run.call.attempts, "try", "tries") },
    facts([
      ["To", run.call.to],
      ["Key", h("code", {}, run.call.key)],
      ...tries.map((one) => [clock(one.at), [`${one.status ?? one.error} · ${figure(one.took_ms)} ms`, one.answer && h("p", { class: "long" }, `The server wrote: ${one.answer}`)]]),
    ]),
  );
}

function sourceSection(run) {
  const sources = run.sources ?? [];
  if (sources.length === 0 && !run.tainted) return null;
  return section(
    "Sources",
    { note: sources.length || null },
    run.tainted && h("p", { class: "pad warn" }, `Since ${clock(run.tainted.at)} it has read what strangers have written. What it says may be false.`),
    h("ul", { class: "rows two" }, sources.map((source, index) => {
      const host = openHost(source.url);
      return h("li", { key: `${source.sha256} ${index}` }, h("span", { class: "what" }, host ? h("a", { href: source.url, target: "_blank", rel: "noopener noreferrer" }, source.title || source.url) : source.title || source.url, h("small", {}, host ?? source.url)), h("code", { class: "muted", title: `SHA-256 ${source.sha256}` }, source.sha256.slice(0, 8)));
    })),
  );
}

const CARD_WORDS = { approved: "allowed", rejected: "not allowed", happened: "it happened", not_happened: "it did not happen", expired: "nobody answered in time", void: "no answer was needed" };

function answeredCards(run) {
  const answered = run.cards.filter((card) => card.state !== "waiting");
  if (answered.length === 0) return null;
  return section("Answered", {}, rows(answered.map((card) => row({ key: card.call_id, time: clock(card.answered_at ?? card.asked_at), title: card.asks === "ceiling" ? "A ceiling of costs" : card.tool, note: card.reason ?? card.why, end: h("span", { class: "chip" }, CARD_WORDS[card.state] ?? card.state) }))));
}

function runFacts(run, occurrence) {
  const { usage } = run;
  const cacheRead = usage.cache_read_tokens ?? 0;
  const written = (usage.cache_write_5m_tokens ?? 0) + (usage.cache_write_1h_tokens ?? 0);
  return section(
    "Cost and model",
    {},
    facts([
      ["Cost", run.cost_micros > 0 && `${money(run.cost_micros)}${usage.estimated ? ", estimated" : ""}`],
      ["Model", run.model && [run.model.model, run.model.level !== "default" && h("small", { class: "muted" }, ` ${run.model.why}`)]],
      ["Tokens", `${figure((usage.input_tokens ?? 0) + cacheRead + written)} in, ${figure(usage.output_tokens ?? 0)} out`],
      ["From the cache", cacheRead > 0 && `${figure(cacheRead)} tokens`],
      ["Searches", usage.web_searches > 0 && figure(usage.web_searches)],
      ["Runs of code", usage.code_runs > 0 && figure(usage.code_runs)],
      ["Tries", occurrence?.attempts > 1 && figure(occurrence.attempts)],
      ["State", chip(occurrence?.state ?? run.state)],
      ["Run", h("code", {}, run.run_id)],
    ]),
    (run.fallbacks ?? []).length > 0 && h("ul", { class: "plain act-listed" }, run.fallbacks.map((fallback, index) => h("li", { key: index }, `${fallback.to} answered instead of ${fallback.from} (${fallback.code.replaceAll("_", " ")}, ${clock(fallback.at)})`))),
  );
}
