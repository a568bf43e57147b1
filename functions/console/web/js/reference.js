// To be written.

import { lostPage } from "./lost.js";

export const referencePage = { ...lostPage, nav: null };
