// What became of drafts: a line stands where the card was, so that a conversation still says what the person has decided. The platform
// deletes a draft when it is answered, so this browser remembers it.

import { get, post } from "./api.js";
import { lazily } from "./app.js";
import { scheduleWords } from "./changes.js";
import { button, failureOf } from "./parts.js";
import { h } from "./view.js";

const OUTCOMES = "lamplighter.outcomes";
const MOST_OUTCOMES = 200;

/** What was parsed last, and of which text: a conversation asks for each of its replies. */
let parsed = { text: null, all: [] };

function storedOutcomes() {
  const text = localStorage.getItem(OUTCOMES);
  if (text === parsed.text) return parsed.all;
  let all = [];
  try {
    all = JSON.parse(text ?? "[]");
  } catch {
    // Something else has written there.
  }
  parsed = { text, all: Array.isArray(all) ? all.filter((one) => typeof one?.draft === "string") : [] };
  return parsed.all;
}

/**
 * Remembers what became of a draft: `did` is `saved`, `changed`, `defined`, `deleted`, or what a command has done; `id` names what it has become or
 * is about; `began` is the run that a command has begun.
 */
export function rememberOutcome(proposal, did, id, began) {
  if (!proposal.run_id) return;
  const mine = { run: proposal.run_id, draft: proposal.proposal_id, did, id, ...(began && { began }), title: String(proposal.title || "a change").slice(0, 200), is: ["asset", "command"].includes(proposal.kind) ? proposal.kind : proposal.action_id ? "change" : "action" };
  keepOutcome(mine);
}

function keepOutcome(mine) {
  const all = [...storedOutcomes().filter((one) => one.draft !== mine.draft), mine].slice(-MOST_OUTCOMES);
  try {
    localStorage.setItem(OUTCOMES, JSON.stringify(all));
  } catch {
    // The browser keeps no more. Only the line is missing.
  }
}

/** Whether a draft was answered here. Lists that were read before still have it. */
export const isAnswered = (draftId) => storedOutcomes().some((one) => one.draft === draftId);

/** The lines of the drafts of a run. */
export function outcomeLines(ctx, runId) {
  return storedOutcomes()
    .filter((one) => one.run === runId)
    .map((one) => [h("p", { class: "line outcome", key: `outcome ${one.draft}` }, outcomeText(ctx, one)), failureOf(ctx, `undo ${one.draft}`)]);
}

/** What undoes a command: the state in which that makes sense, the route, and what was done then. */
const COMMAND_UNDO = { paused: ["paused", "resume", "resumed"], resumed: ["scheduled", "pause", "paused"] };

/** What a command has done, and what undoes it. */
function commandOutcome(ctx, one, verb) {
  const { did, id, began, title } = one;
  const action = lazily(`outcome ${id}`, () => get(`/actions/${id}`));
  const line = [verb, h("a", { href: `#/actions/${id}` }, action?.title ?? title), "."];
  if (began) line.push(" ", h("a", { href: `#/runs/${began}` }, did === "ran" ? "See the run" : "See the rehearsal"));
  const [state, route, undone] = COMMAND_UNDO[did] ?? [];
  if (!state || action?.state !== state) return line;
  const undo = async () => {
    await post(`/actions/${id}/${route}`, {});
    keepOutcome({ ...one, did: undone });
  };
  return [...line, " ", button(ctx, "Undo", { key: `undo ${one.draft}`, kind: "quiet", act: undo })];
}

const COMMAND_VERBS = { paused: "You paused ", resumed: "You resumed ", ran: "You ran ", rehearsed: "You rehearsed ", dismissed: "You dismissed " };

function outcomeText(ctx, one) {
  const { did, id, is, title } = one;
  if (COMMAND_VERBS[did]) return commandOutcome(ctx, one, COMMAND_VERBS[did]);
  if (did === "deleted") return `You deleted the ${{ change: "proposed change of", command: "proposal for" }[is] ?? "draft"} “${title}”.`;
  if (did === "saved") return ["Saved: ", h("a", { href: `#/assets/${id}` }, title)];
  const action = lazily(`outcome ${id}`, () => get(`/actions/${id}`));
  const verb = did === "changed" ? "You changed " : "You added ";
  if (action === null) return `${verb}“${title}”. It was deleted since.`;
  if (!action) return [verb, h("a", { href: `#/actions/${id}` }, title), "."];
  const name = h("a", { href: `#/actions/${id}` }, action.title);
  if (action.state === "dismissed") return [verb, name, ". It was dismissed since."];
  const runs = action.schedule_text ? `runs ${scheduleWords(action.schedule_text)}` : "runs when you run it";
  if (action.approval?.hash === action.approval_hash) return [did === "changed" ? "You approved the change of " : "You approved ", name, `: ${runs}.`];
  return [verb, name, ". It ", h("a", { href: `#/actions/${id}` }, "waits for your approval"), `, then ${runs}.`];
}
