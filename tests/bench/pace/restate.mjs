// One run of six stored steps in Restate: claim, model, save, model, check, finish. See main.rs.
//
// node restate.mjs FOLDER RUNS MODEL_URL, where FOLDER has the packages. Prints one line of JSON.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

if (!Promise.withResolvers) {
    console.error(`Restate's SDK needs Node 22, and this is ${process.version}`);
    process.exit(1);
}

const [folder, runs, model] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const require = createRequire(join(folder, "package.json"));
const restate = await import(pathToFileURL(require.resolve("@restatedev/restate-sdk")).href);

const freePort = () =>
    new Promise((resolve) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });

const ask = async (body) => {
    const answer = await fetch(`${model}/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`the model answers ${answer.status}`);
    // The first event of the stream has the whole message.
    return JSON.parse((await answer.text()).split("\n\n")[0].slice("data: ".length)).choices[0].delta;
};

const began = new Map();
const ended = new Map();
let allEnded;
const everything = new Promise((resolve) => (allEnded = resolve));

const run = async (context, id) => {
    if (!began.has(id)) began.set(id, performance.now());
    const messages = [{ role: "user", content: "Do it" }];
    await context.run("claim", () => ({ id }));
    messages.push(await context.run("model", () => ask({ messages })));
    messages.push(await context.run("save", () => ({ role: "tool", tool_call_id: "call", content: "saved" })));
    messages.push(await context.run("model again", () => ask({ messages })));
    await context.run("check", () => ask({ messages: [{ role: "user", content: "check" }] }));
    await context.run("finish", () => ({ id }));
    ended.set(id, performance.now());
    if (ended.size === runs) allEnded();
};

const [ingress, admin, fabric, service] = [await freePort(), await freePort(), await freePort(), await freePort()];
const data = mkdtempSync(join(tmpdir(), "restate-"));
const server = spawn(join(folder, "node_modules/.bin/restate-server"), ["--base-dir", data], {
    env: {
        ...process.env,
        RESTATE_LISTEN_MODE: "tcp",
        RESTATE_BIND_IP: "127.0.0.1",
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
        RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
        RESTATE_DISABLE_TELEMETRY: "true",
        RESTATE_LOG_FILTER: "error",
    },
    stdio: "ignore",
    detached: true,
});
process.on("exit", () => {
    try {
        process.kill(-server.pid, "SIGKILL");
    } catch {}
    rmSync(data, { recursive: true, force: true });
});

// The processor time of the server and its children, and of this process, in seconds.
const processor = () => {
    const group = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    let ticks = 0;
    for (const pid of group) {
        try {
            const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
            if (Number(fields[2]) === server.pid) ticks += Number(fields[11]) + Number(fields[12]);
        } catch {}
    }
    const { user, system } = process.cpuUsage();
    return ticks / 100 + (user + system) / 1e6;
};

const size = (path) => {
    let bytes = 0;
    for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
        if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).blocks * 512;
    }
    return bytes;
};

const patiently = async (what) => {
    const deadline = performance.now() + 60_000;
    for (;;) {
        try {
            const answer = await what();
            if (answer.ok) return answer;
        } catch {}
        if (performance.now() > deadline) throw new Error("Restate does not start");
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
};

await restate.serve({
    services: [restate.service({ name: "Bench", handlers: { run } })],
    port: service,
    logger: () => {},
});
const post = (url, body) =>
    fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
await patiently(() => fetch(`http://127.0.0.1:${admin}/health`));
await patiently(() => post(`http://127.0.0.1:${admin}/deployments`, { uri: `http://127.0.0.1:${service}` }));
await patiently(() => fetch(`http://127.0.0.1:${ingress}/restate/health`));

const [bytesBefore, processorBefore, start] = [size(data), processor(), performance.now()];
let next = 0;
const sender = async () => {
    while (next < runs) {
        const sent = await post(`http://127.0.0.1:${ingress}/Bench/run/send`, `run-${next++}`);
        if (!sent.ok) throw new Error(`Restate answers ${sent.status}`);
    }
};
await Promise.all(Array.from({ length: 100 }, sender));
const deadline = setTimeout(() => {
    console.error(`only ${ended.size} of ${runs} runs have ended after five minutes`);
    process.exit(1);
}, 300_000);
await everything;
clearTimeout(deadline);
const seconds = (performance.now() - start) / 1000;
const delays = [...began.values()].map((at) => (at - start) / 1000);
console.log(
    JSON.stringify({ seconds, delays, processor: processor() - processorBefore, bytes: size(data) - bytesBefore }),
);
process.exit(0);
