// To be written.

import { lostPage } from "./lost.js";

export const chatPage = { ...lostPage, nav: "agents" };
