// To be written.

import { lostPage } from "./lost.js";

export const runPage = { ...lostPage, nav: "agents" };
