// Serves the console from its sources, so that a change shows after a reload. Everything else goes to a running platform:
//
//   node functions/console/serve.mjs 9001 9000
//
// serves the console at port 9001 of this machine, with the platform at port 9000. For people who change the console; the platform
// itself serves what the build has joined.

import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

const web = path.join(path.dirname(fileURLToPath(import.meta.url)), "web");
const [port, platform] = process.argv.slice(2).map(Number);
if (!port || !platform) {
  console.error("usage: node serve.mjs PORT PORT_OF_THE_PLATFORM");
  process.exit(2);
}
const csp = fs.readFileSync(path.join(web, "csp.txt"), "utf8").trim();
const TYPES = { ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png", ".webmanifest": "application/manifest+json" };
const OWN = [`http://127.0.0.1:${port}`, `http://localhost:${port}`];
const ACCESS = { auth: process.env.CONSOLE_AUTH ?? "off", base: "" };

function page() {
  const values = { base: "", access: JSON.stringify(ACCESS).replaceAll('"', "&quot;"), style: "style.css", script: "js/main.js" };
  return fs.readFileSync(path.join(web, "index.html"), "utf8").replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]);
}

function styles() {
  const folder = path.join(web, "css");
  return fs.readdirSync(folder).sort().map((name) => fs.readFileSync(path.join(folder, name), "utf8")).join("\n");
}

function answer(response, type, body, headers = {}) {
  response.writeHead(200, { "content-type": type, "cache-control": "no-store", ...headers });
  response.end(body);
}

const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/" && request.method === "GET") return answer(response, "text/html; charset=utf-8", page(), { "content-security-policy": csp });
  if (pathname === "/console/style.css") return answer(response, "text/css", styles());
  if (pathname.startsWith("/console/")) {
    const file = path.join(web, path.normalize(pathname.slice("/console".length)));
    const type = TYPES[path.extname(file)];
    if (type && file.startsWith(web) && fs.existsSync(file)) return answer(response, type, fs.readFileSync(file));
    response.writeHead(404);
    return response.end();
  }
  const headers = { ...request.headers, host: `127.0.0.1:${platform}` };
  // For the platform, pages of this port are its own. All others stay what they are, and it refuses them.
  if (OWN.includes(request.headers.origin) && OWN.includes(`http://${request.headers.host}`)) headers.origin = `http://127.0.0.1:${platform}`;
  const onward = http.request({ host: "127.0.0.1", port: platform, method: request.method, path: request.url, headers }, (from) => {
    response.writeHead(from.statusCode, from.headers);
    from.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
server.listen(port, "127.0.0.1", () => console.log(`the console at http://127.0.0.1:${port}, the platform at ${platform}`));
