// Keeps the place of a person who uses the keyboard: when a drawing takes away what had the focus, something near it gets it.

/** What had the focus last. A button that is disabled while it works loses the focus, and is still the place of the person. */
let held = null;

const NEAR = 5;

export function watchFocus() {
  document.addEventListener("focusin", (event) => (held = event.target));
  // Who presses on something else has left.
  document.addEventListener("pointerdown", (event) => {
    if (held && !held.contains(event.target)) held = null;
  });
}

function siblings(node, direction) {
  const all = [];
  for (let next = node[direction]; next && all.length < NEAR; next = next[direction]) all.push(next);
  return all;
}

/** To be called before a drawing. What it returns is called after it. */
export function holdFocus() {
  const mine = held;
  if (!mine?.isConnected || mine === document.body || mine.closest("dialog")) return () => {};
  const levels = [];
  for (let node = mine; node && node !== document.body; node = node.parentElement) {
    const isItem = node.matches("article, li");
    levels.push({ node, near: isItem ? [...siblings(node, "nextElementSibling"), ...siblings(node, "previousElementSibling")] : [] });
  }
  return () => {
    const now = document.activeElement;
    if (mine.isConnected || (now && now !== document.body) || document.querySelector("dialog[open]")) return;
    const at = levels.findLastIndex(({ node }) => !node.isConnected);
    if (levels[at].near.some((node) => node.isConnected && takeItem(node))) return;
    const parent = levels[at + 1]?.node;
    const typed = parent?.closest("form")?.querySelector("textarea:not([disabled]), input:not([disabled], [type=file])");
    if (typed) return typed.focus({ preventScroll: true });
    const section = parent?.closest("section");
    const heading = section?.querySelector("h2, h3") ?? document.querySelector("main h1") ?? document.querySelector("#main");
    // What the person looks at stays where it is.
    if (heading) takeFocus(heading, { preventScroll: true });
  };
}

/** A card gets the focus itself, so that its name is said and no key presses its button; of a row, its link does. */
function takeItem(node) {
  if (node.matches("article")) return takeFocus(node);
  const link = node.matches("li") && node.querySelector("a");
  if (link) link.focus();
  return Boolean(link);
}

function takeFocus(node, options) {
  if (!node.hasAttribute("tabindex")) node.tabIndex = -1;
  node.focus(options);
  return true;
}
