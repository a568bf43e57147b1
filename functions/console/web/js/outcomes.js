// What became of drafts: a line stands where the card was, so that a conversation still says what the person has decided. The platform
// deletes a draft when it is answered, so this browser remembers it.

import { get } from "./api.js";
import { lazily } from "./app.js";
import { scheduleWords } from "./changes.js";
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

/** Remembers what became of a draft: `did` is `saved`, `changed`, `defined` or `deleted`, and `id` names what it has become. */
export function rememberOutcome(proposal, did, id) {
  if (!proposal.run_id) return;
  const mine = { run: proposal.run_id, draft: proposal.proposal_id, did, id, title: String(proposal.title || "a change").slice(0, 200), is: proposal.kind === "asset" ? "asset" : proposal.action_id ? "change" : "action" };
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
    .map((one) => h("p", { class: "line outcome", key: `outcome ${one.draft}` }, outcomeText(one)));
}

function outcomeText({ did, id, is, title }) {
  if (did === "deleted") return `You deleted the ${is === "change" ? "proposed change of" : "draft"} “${title}”.`;
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
