// One watched schedule: what became of its due times, its reports, how it reports, and what can be changed about it.

import { address, del, edit, getAll } from "./api.js";
import { flash, reading } from "./app.js";
import { access } from "./credentials.js";
import { counted, listed } from "./format.js";
import { button, confirmation, copyButton, facts, failureOf, head, press, row, section, when } from "./parts.js";
import { h } from "./view.js";
import { isWatchedReady, watchChip, watchedFields, watchedForm, watchedInputs, watchedState, watchedWhy } from "./watch.js";

const watchedPath = (ctx) => `/watched/${encodeURIComponent(ctx.params.watched_id)}`;

export const watchSchedulePage = {
  nav: "watch",
  of: "watch",
  title: (ctx) => ctx.data.one.name,
  reads: (ctx) => ({
    one: watchedPath(ctx),
    ledger: `${watchedPath(ctx)}/ledger`,
    reports: reading(`reports of ${ctx.params.watched_id}`, (signal) => getAll(`${watchedPath(ctx)}/reports?limit=20`, ctx.state.pages ?? 1, signal)),
  }),
  view(ctx) {
    const { one } = ctx.data;
    const pause = (paused) => () => edit(watchedPath(ctx), { paused }, { ifMatch: one.version });
    return h(
      "article",
      { key: one.watched_id, class: "watch" },
      h("p", { class: "crumb" }, h("a", { href: "#/watch" }, "Watch")),
      head(
        one.name,
        one.schedule_text,
        !ctx.state.form && press("Edit", () => { ctx.state.form = watchedForm(one); ctx.state.version = one.version; ctx.redraw(); }, { key: "edit" }),
        one.paused ? button(ctx, "Resume", { key: "resume", kind: "primary", act: pause(false) }) : button(ctx, "Pause", { key: "pause", title: "Nothing is due while it is paused", act: pause(true) }),
        press("Delete…", () => deleteWatched(ctx, one), { kind: "quiet", key: "delete" }),
      ),
      failureOf(ctx, "resume"),
      failureOf(ctx, "pause"),
      ctx.state.form && watchedEdit(ctx),
      h(
        "div",
        { class: "cols" },
        h("div", {}, ledgerSection(ctx, one), reportsSection(ctx)),
        h("div", {}, nowSection(one), reportLines(one)),
      ),
    );
  },
};

function watchedEdit(ctx) {
  const { form } = ctx.state;
  const set = (change) => {
    Object.assign(form, change);
    ctx.redraw();
  };
  const close = () => {
    ctx.state.form = null;
    ctx.redraw();
  };
  const save = async () => {
    await edit(watchedPath(ctx), watchedFields(form), { ifMatch: ctx.state.version });
    ctx.state.form = null;
    flash("Saved. A new schedule counts from now on.");
  };
  const isReady = isWatchedReady(form);
  return h(
    "form",
    { class: "form watch-new", key: "form", "aria-label": "Change this schedule", onsubmit: (event) => { event.preventDefault(); if (isReady) ctx.act("save watched", save); } },
    watchedInputs(ctx, "save watched", form, set),
    h("div", { class: "acts" }, h("button", { class: "btn primary", disabled: !isReady || ctx.busy("save watched") }, "Save"), press("Cancel", close, { kind: "quiet" })),
  );
}

function nowSection(one) {
  return section(
    "Now",
    {},
    facts([
      ["State", watchedState(one)],
      ["Next due", one.next_due && when(one.next_due)],
      ["Waits since", one.waiting_since && when(one.waiting_since)],
      ["Last report", one.last_report ? when(one.last_report.at) : "none yet"],
      ["Late after", counted(one.grace_minutes, "minute")],
      ["A result", one.expects_result ? "is expected" : "is not needed"],
    ]),
    watchedWhy(one) && h("p", { class: "watch-why" }, watchedWhy(one)),
  );
}

const reportUrl = (one) => new URL(address(`/watched/${one.watched_id}/reports`), location.origin).href;

function reportLines(one) {
  const key = access.auth === "off" ? "" : ` -H "authorization: Bearer $LAMPLIGHTER_API_KEY"`;
  const curl = `curl -fsS -m 10 ${reportUrl(one)}${key} -H 'content-type: application/json' -d "{\\"exit_code\\": $?}"`;
  const wrap = `lamplighter watch wrap ${one.watched_id} -- ./your-command`;
  const copyable = (name, text) => h("div", { class: "watch-line", key: name }, h("pre", { tabindex: "0", "aria-label": name }, h("code", {}, text)), copyButton(text));
  return section(
    "How it reports",
    { id: "reports-how" },
    h("p", { class: "muted watch-under" }, "Put this line right after the command. It sends the exit code of the command."),
    copyable("The line with curl", curl),
    h("p", { class: "muted watch-under" }, "Or let the shell command run it. The exit code is passed on, also if the report fails."),
    copyable("The line with lamplighter", wrap),
  );
}

function reportNote(report) {
  return [
    report.summary && h("span", { class: "watch-remedy" }, report.summary),
    /^https:\/\//.test(report.link ?? "") && h("span", { class: "watch-remedy" }, h("a", { href: report.link, rel: "noopener noreferrer", target: "_blank" }, report.link)),
  ];
}

function ledgerSection(ctx, one) {
  const { ledger } = ctx.data;
  const newest = [...ledger.data].reverse();
  const counts = ["ran", "late", "empty", "silent", "failed"].map((state) => [newest.filter((due) => due.state === state).length, state]).filter(([count]) => count > 0);
  return section(
    "Due times",
    { id: "ledger", note: newest.length > 0 ? `the last seven days: ${listed(counts.map(([count, state]) => `${count} ${state}`))}` : null },
    newest.length === 0 && h("p", { class: "muted watch-under" }, one.paused ? "It is paused, so nothing is due." : "Nothing was due in the last seven days."),
    newest.length > 0 &&
      h(
        "ul",
        { class: "rows", "aria-label": "Due times, newest first" },
        newest.map((due) => row({ key: due.due, time: when(due.due, { form: "moment" }), title: due.why, note: due.report && reportNote(due.report), end: watchChip(due.state) })),
      ),
    ledger.next_from && h("p", { class: "muted" }, "These are the first 500 of the last seven days."),
  );
}

function reportsSection(ctx) {
  const { reports } = ctx.data;
  return section(
    "Reports",
    { id: "reports" },
    reports.data.length === 0 && h("p", { class: "muted watch-under" }, "No report came yet. The lines under “How it reports” send one."),
    reports.data.length > 0 &&
      h(
        "ul",
        { class: "rows", "aria-label": "Reports, newest first" },
        reports.data.map((one) =>
          row({
            key: one.report_id,
            time: when(one.at, { form: "moment" }),
            title: one.ok ? "A success" : "A failure",
            note: [Number.isInteger(one.exit_code) && `exit code ${one.exit_code}`, reportNote(one)],
            end: watchChip(one.ok ? "ran" : "failed", one.ok ? "ok" : "failed"),
          }),
        ),
      ),
    !reports.complete && button(ctx, "Show more reports", { act: async () => { ctx.state.pages = (ctx.state.pages ?? 1) + 1; } }),
  );
}

function deleteWatched(ctx, one) {
  confirmation(ctx, {
    title: `Delete “${one.name}”?`,
    key: "delete watched",
    label: "Delete",
    text: "All its reports are deleted, too. What runs on this schedule goes on, and nobody watches it. This cannot be undone.",
    act: async () => {
      await del(watchedPath(ctx), { ifMatch: one.version });
      ctx.go("#/watch");
      flash("Deleted.");
    },
  });
}
