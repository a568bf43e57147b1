// To be written.

import { lostPage } from "./lost.js";

export const settingsPage = { ...lostPage, nav: "agents" };
