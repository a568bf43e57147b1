// What runs have saved, read in place.

import { get, getText } from "./api.js";
import { bytes, capital } from "./format.js";
import { readContent } from "./markdown.js";
import { dialog, link, press, problem } from "./parts.js";
import { h } from "./view.js";

export const TAINT_WORDS = "may repeat what strangers have written";

/** Opens an output: `{ asset_id, title }`. */
export function readOutput(ctx, output) {
  return openOutputs(ctx, output.title, async () => [output]);
}

/** States of runs that have probably saved something. */
const SAVED = new Set(["succeeded", "completed"]);

/** A button that reads what a run has saved, if it probably has. `run` has `run_id` and `state`. */
export function readButton(ctx, run, actionId, title, label = "Read") {
  if (!run.run_id || !SAVED.has(run.state)) return null;
  return press([label, h("span", { class: "vh" }, ` what “${title}” has made`)], () => readOutputs(ctx, title, actionId, run.run_id), { kind: "quiet", key: `read ${run.run_id}` });
}

/** Opens what a run of an action has saved; the first of several, with links to the others. */
export function readOutputs(ctx, title, actionId, runId) {
  return openOutputs(ctx, title, async () => (await get(`/actions/${actionId}/runs/${runId}/outputs`)).data);
}

/** Codes of errors of runs whose output a model or a program has refused. */
const REFUSED = new Set(["output_rejected", "condition_not_met"]);

/** What an output lacks, if it was refused: `the saved output does not meet what was expected: a; b` as `[a, b]`. Else null. */
export function lacksOf(code, detail) {
  const at = detail?.indexOf(": ") ?? -1;
  if (!REFUSED.has(code) || at < 0) return null;
  return detail.slice(at + 2).split("; ");
}

/** A list of what an output lacks. */
export const lacksList = (lacks) => h("ul", { class: "lacks", "aria-label": "What is missing" }, lacks.map((one, index) => h("li", { key: index }, capital(one.replace(/\.$/, "")))));

async function openOutputs(ctx, title, find) {
  let outputs = null;
  let shown = null;
  let content = null;
  let error = null;
  const attempt = async (work) => {
    error = null;
    try {
      await work();
    } catch (failure) {
      error = failure;
    }
    ctx.redraw();
  };
  const show = (output) => {
    shown = output;
    content = null;
    ctx.redraw();
    return attempt(async () => {
      const asset = await get(`/assets/${output.asset_id}`);
      const text = await getText(`/assets/${output.asset_id}/content`);
      if (shown === output) content = { text, type: asset.asset_type };
    });
  };
  const read = () =>
    attempt(async () => {
      outputs ??= await find();
      if (outputs.length > 0) await show(shown ?? outputs[0]);
    });
  ctx.open(() =>
    dialog(
      { title, kind: "wide", onclose: () => ctx.close() },
      outputs?.length > 1 && h("div", { class: "quick", role: "group", "aria-label": "Outputs of this run" }, outputs.map((one) => press(one.title, () => show(one), { key: one.asset_id, kind: one === shown ? "chosen" : "" }))),
      shown && content && outputs.length === 1 && shown.title !== title && !content.text.slice(0, 300).includes(shown.title) && h("p", { class: "muted" }, shown.title),
      shown?.tainted && h("p", { class: "warn" }, `It ${TAINT_WORDS}.`),
      error
        ? problem(ctx, error, { title: error.status === 404 ? "It was deleted" : undefined, retry: error.status === 404 ? undefined : read })
        : outputs?.length === 0
          ? h("p", { class: "muted" }, "This run has saved nothing, or its outputs were deleted.")
          : !content
            ? h("p", { class: "muted" }, "Reading…")
            : readContent(content.text, content.type),
      shown && h("div", { class: "acts" }, h("span", { class: "muted" }, bytesOf(shown)), h("div", { class: "end" }, link("Open the asset", `#/assets/${shown.asset_id}`, { kind: "" }))),
    ),
  );
  await read();
}

const bytesOf = (output) => (output.bytes ? bytes(output.bytes) : null);
