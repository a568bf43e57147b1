// Begins the console.

import { accountPage } from "./account.js";
import { actionPage } from "./action.js";
import { actionsPage } from "./actions.js";
import { agentsPage } from "./agents.js";
import { contextNow, redraw, run } from "./app.js";
import { agentAssetsPage, assetPage, assetsPage } from "./assets.js";
import { chatDoorPage } from "./chat-door.js";
import { chatPage } from "./chat.js";
import { contextPage } from "./context.js";
import { access } from "./credentials.js";
import { docPage } from "./doc.js";
import { docsPage, projectDocsPage } from "./docs.js";
import { refuseEntrance } from "./entrance.js";
import { frame, listenToKeys, offer, watchVersion } from "./frame.js";
import { lostPage } from "./lost.js";
import { memoryDayPage, memoryWeekPage } from "./memory-days.js";
import { memoryPage } from "./memory.js";
import { noticesPage } from "./notices.js";
import { finishSignIn } from "./openid.js";
import { practicePage } from "./practice.js";
import { practicesPage } from "./practices.js";
import { referencePage } from "./reference.js";
import { runPage } from "./run.js";
import { settingsPage } from "./settings.js";
import { setupPage } from "./setup.js";
import { themePage, themesPage } from "./themes.js";
import { todayPage } from "./today.js";
import { watchSchedulePage } from "./watch-schedule.js";
import { watchPage } from "./watch.js";

/** Every page by its address. The first that matches is shown; the last one matches always. */
const PAGES = [
  ["/", todayPage],
  ["/setup", setupPage],
  ["/setup/:chat_id", setupPage],
  ["/agents", agentsPage],
  ["/agents/:agent_id", chatPage],
  ["/agents/:agent_id/chat/:chat_id", chatPage],
  ["/agents/:agent_id/actions", actionsPage],
  ["/agents/:agent_id/assets", agentAssetsPage],
  ["/agents/:agent_id/settings", settingsPage],
  ["/actions/:action_id", actionPage],
  ["/actions/:action_id/:view", actionPage],
  ["/runs/:run_id", runPage],
  ["/assets", assetsPage],
  ["/assets/:asset_id", assetPage],
  ["/chats/:chat_id", chatDoorPage],
  ["/memory", memoryPage],
  ["/memory/days/:date", memoryDayPage],
  ["/memory/weeks/:monday", memoryWeekPage],
  ["/practices", practicesPage],
  ["/practices/:practice_id", practicePage],
  ["/themes", themesPage],
  ["/themes/:project_id", themePage],
  ["/themes/:project_id/:view", themePage],
  ["/themes/:project_id/chat/:chat_id", themePage],
  ["/watch", watchPage],
  ["/watch/schedules/:watched_id", watchSchedulePage],
  ["/notices", noticesPage],
  ["/context", contextPage],
  ["/context/docs", docsPage],
  ["/context/docs/:project_id", projectDocsPage],
  ["/context/docs/:project_id/:name", docPage],
  ["/context/:view", contextPage],
  ["/context/:view/:id", contextPage],
  ["/account", accountPage],
  ["/account/:view", accountPage],
  ["/reference", referencePage],
  ["/reference/:tag", referencePage],
  ["/*rest", lostPage],
];

refuseEntrance(await finishSignIn(access.openid));
offer(new Set(PAGES.map(([, page]) => page.nav)));
run(PAGES, frame);
listenToKeys(contextNow);
watchVersion(redraw);
