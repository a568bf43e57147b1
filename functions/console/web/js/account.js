// To be written.

import { lostPage } from "./lost.js";

export const accountPage = { ...lostPage, nav: "account" };
