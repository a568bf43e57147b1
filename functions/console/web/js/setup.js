// To be written.

import { lostPage } from "./lost.js";

export const setupPage = { ...lostPage, nav: null };
