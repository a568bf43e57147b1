// To be written.

import { lostPage } from "./lost.js";

export const contextPage = { ...lostPage, nav: "context" };
