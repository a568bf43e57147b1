// Short texts of the platform: sentences with `code` in backticks, and blocks that can be copied.

import { copyButton } from "./parts.js";
import { h } from "./view.js";

/** A sentence in which the parts between backticks are code. */
export function codeSpans(text) {
  const parts = (text ?? "").split("`");
  // Without a partner, a backtick is a backtick.
  if (parts.length % 2 === 0) parts.push(`${parts.splice(-2, 1)[0]}\`${parts.pop()}`);
  return parts.map((part, index) => (index % 2 === 1 ? h("code", {}, part) : part));
}

/** A block of text that can be copied. */
export function copyBlock(text, label) {
  return h("div", { class: "copy-block" }, h("pre", { class: "reader", tabindex: "0", role: "region", "aria-label": label }, text), copyButton(text));
}
