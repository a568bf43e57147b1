// To be written.

import { lostPage } from "./lost.js";

export const actionsPage = { ...lostPage, nav: "agents" };
