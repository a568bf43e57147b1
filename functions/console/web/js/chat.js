// To be written.

import { agentHead } from "./agent-head.js";
import { lostPage } from "./lost.js";
import { follow } from "./sse.js";

export const headOfChat = [agentHead, follow];

export const chatPage = { ...lostPage, nav: "agents" };
