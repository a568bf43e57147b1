// To be written.

import { lostPage } from "./lost.js";

export const assetsPage = { ...lostPage, nav: "assets" };
export const agentAssetsPage = { ...lostPage, nav: "agents" };
export const assetPage = { ...lostPage, nav: "assets" };
