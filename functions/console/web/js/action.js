// To be written.

import { lostPage } from "./lost.js";

export const actionPage = { ...lostPage, nav: "agents" };
