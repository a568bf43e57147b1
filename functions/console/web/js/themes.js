// To be written.

import { lostPage } from "./lost.js";

export const themesPage = { ...lostPage, nav: "themes" };
export const themePage = { ...lostPage, nav: "themes" };
