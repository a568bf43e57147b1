// The colours of the console in this browser: light, dark, or as the system has them.

const LOOK_CHOICE = "lamplighter.theme";

/** What can be chosen, with its name. */
export const LOOKS = [
  ["", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** What is chosen here. */
export const chosenLook = () => {
  const chosen = localStorage.getItem(LOOK_CHOICE);
  return chosen === "light" || chosen === "dark" ? chosen : "";
};

/** Chooses, for every page and every tab. */
export function chooseLook(look) {
  if (look) localStorage.setItem(LOOK_CHOICE, look);
  else localStorage.removeItem(LOOK_CHOICE);
  applyLook();
}

function applyLook() {
  const chosen = chosenLook();
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
}

applyLook();
addEventListener("storage", (event) => event.key === LOOK_CHOICE && applyLook());
