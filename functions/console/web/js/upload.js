// Archives: small ones go in one request, large ones to the address that the platform names.

import { post } from "./api.js";
import { bytes } from "./format.js";
import { failureOf, press } from "./parts.js";
import { copyBlock } from "./prose.js";
import { h } from "./view.js";

/** Why a file cannot be an archive, or null. */
export function archiveFault(files, most) {
  const [file] = files;
  if (files.length > 1) return `These are ${files.length} files. Put them into one zip.`;
  if (!/\.zip$/i.test(file.name) && !/zip/.test(file.type)) return `“${file.name}” is not a zip.`;
  if (file.size === 0) return `“${file.name}” is empty.`;
  if (file.size > most) return `“${file.name}” has ${bytes(file.size)}. An archive has at most ${bytes(most)}.`;
  return null;
}

/**
 * Sends an archive to `path`. While it is sent, `ctx.state.upload` says how far; if the page may not send it to its address,
 * `ctx.state.refused` says how else it can be sent.
 */
export async function sendArchiveTo(ctx, path, file, inline) {
  const upload = { name: file.name, total: file.size, sent: null };
  ctx.state.upload = upload;
  ctx.state.refused = null;
  ctx.redraw();
  try {
    if (file.size <= inline) return await post(path, file, { headers: { "content-type": "application/zip" } });
    const waiting = await post(path, { bytes: file.size });
    await sendToStore(ctx, waiting.upload, file, upload);
    return waiting;
  } finally {
    ctx.state.upload = null;
  }
}

/** Puts the archive where the platform says. No credential goes there: the address is signed. */
function sendToStore(ctx, target, file, upload) {
  return new Promise((done, fail) => {
    const to = new URL(target.url);
    let isRefused = false;
    const onviolation = (event) => {
      if (event.effectiveDirective === "connect-src" && event.blockedURI.startsWith(to.origin)) isRefused = true;
    };
    document.addEventListener("securitypolicyviolation", onviolation);
    const end = (error) => {
      document.removeEventListener("securitypolicyviolation", onviolation);
      if (error) fail(error);
      else done();
    };
    const request = new XMLHttpRequest();
    upload.stop = () => request.abort();
    request.upload.onprogress = (event) => {
      upload.sent = event.loaded;
      ctx.redraw();
    };
    request.onload = () => end(request.status < 300 ? null : new Error(`The store refused the archive (${request.status}). Try again.`));
    // The violation is reported with a task of its own.
    request.onerror = () =>
      setTimeout(() => {
        ctx.state.refused = { url: target.url, name: file.name };
        end(new Error(isRefused ? `This page may not send to ${to.host}: the policy of the page allows its own address only.` : `${to.host} did not take the archive.`));
      });
    request.onabort = () => end(new Error("The upload was stopped. Nothing has changed."));
    request.open(target.method, target.url);
    // The browser writes the length itself.
    for (const [name, value] of Object.entries(target.headers)) if (name.toLowerCase() !== "content-length") request.setRequestHeader(name, value);
    request.send(file);
  });
}

const shellQuoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** How far the archive is, and what is wrong with it. `key` is the act that sends it. */
export function sendingState(ctx, key) {
  const { upload, refused } = ctx.state;
  return [
    refused?.text && h("p", { class: "bad", role: "alert", key: "refused" }, refused.text),
    failureOf(ctx, key),
    refused?.url && [
      h("p", { key: "elsewhere" }, "Send it from a terminal within five minutes. The import begins with the upload:"),
      copyBlock(`curl -sS -X PUT ${shellQuoted(refused.url)} \\\n  -H 'content-type: application/zip' --upload-file ${shellQuoted(refused.name)}`, "The command that sends the archive"),
    ],
    upload && [
      h("p", { key: "sending" }, upload.sent === null ? `Sending “${upload.name}” (${bytes(upload.total)})…` : `Sending “${upload.name}”: ${bytes(upload.sent)} of ${bytes(upload.total)}`),
      h("progress", { key: "progress", "aria-label": "Sending", max: "1", ...(upload.sent === null ? {} : { value: upload.sent / upload.total }) }),
      upload.stop && press("Stop", () => upload.stop(), { kind: "quiet" }),
    ],
  ];
}

/** A control that chooses a zip. */
export function archiveInput(label, choose) {
  return h("input", {
    type: "file",
    class: "archive",
    accept: ".zip,application/zip",
    "aria-label": label,
    onchange: (event) => {
      const files = [...event.target.files];
      // The same file can be chosen again.
      event.target.value = "";
      if (files.length > 0) choose(files);
    },
  });
}
