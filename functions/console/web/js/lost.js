// The page of an address that names nothing.

import { h } from "./view.js";

export const lostPage = {
  nav: null,
  title: () => "Not found",
  every: () => 0,
  view: () => h("div", { class: "lost", key: "lost" }, h("h1", {}, "There is no such page"), h("p", {}, h("a", { class: "btn", href: "#/" }, "Go to Today"))),
};
