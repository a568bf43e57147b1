#!/usr/bin/env bash
# Guess:    SDKs of two providers, made with the same generator, treat a long `Retry-After` alike: they wait up to some bound, then give up.
# Reality:  three answers, and for an hour each of them is its own kind of surprise (with `timeout` set to one second):
#           - both packages of Anthropic sleep for the hour. The timeout holds for each attempt, not for the sleep
#             between attempts;
#           - OpenAI's TypeScript package ignores any value over 60 seconds and tries again at once, three requests in about two
#             seconds, to a server that asked for an hour of peace;
#           - OpenAI's Python package gives up after the first request (its bound is 120 seconds: it waits for 90).
# Versions: anthropic 2.14.0, openai 3.57.0 (PyPI); @anthropic-ai/sdk 1.14.0, openai 7.59.0 (npm).
# Why:      a function with 15 minutes at most is paid for while it sleeps, and then ends by force. Whoever retries for itself
#           sets the SDK's retries to 0. Whoever answers such clients sends at most 60 if the value shall be obeyed by all four.
# Seen:     2026-11-29, the text at the end of this script. "waits" means: neither an answer nor an error six seconds after the first request, one request made.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages @anthropic-ai/sdk@1.14.0 openai@7.59.0
pip_packages anthropic==2.14.0 openai==3.57.0

cat > "$WORK/probe.mjs" <<'END'
import { createServer } from 'node:http';
import { spawn } from 'node:child_process';
const python = process.argv[2];
const requests = {};
const server = createServer((request, response) => {
  const [, name, seconds] = request.url.split('/');
  requests[`${name} ${seconds}`] = (requests[`${name} ${seconds}`] ?? 0) + 1;
  response.writeHead(429, { 'content-type': 'application/json', 'retry-after': seconds });
  response.end('{"error":{"type":"rate_limit_error","message":"slow down"}}');
});
await new Promise(ready => server.listen(0, '127.0.0.1', ready));
const base = `http://127.0.0.1:${server.address().port}`;
const chat = `messages=[{"role": "user", "content": "hi"}]`;
const js = `messages: [{ role: 'user', content: 'hi' }]`;
const programs = {
  'anthropic-python': u => [python, '-c', `import anthropic\nanthropic.Anthropic(api_key="k", base_url="${u}", timeout=1).messages.create(model="m", max_tokens=1, ${chat})`],
  'openai-python': u => [python, '-c', `import openai\nopenai.OpenAI(api_key="k", base_url="${u}", timeout=1).chat.completions.create(model="m", ${chat})`],
  'anthropic-typescript': u => ['node', '--input-type=module', '-e', `import A from '@anthropic-ai/sdk'; await new A({ apiKey: 'k', baseURL: '${u}', timeout: 1000 }).messages.create({ model: 'm', max_tokens: 1, ${js} })`],
  'openai-typescript': u => ['node', '--input-type=module', '-e', `import O from 'openai'; await new O({ apiKey: 'k', baseURL: '${u}', timeout: 1000 }).chat.completions.create({ model: 'm', ${js} })`],
};
for (const seconds of ['1', '90', '3600']) for (const [name, program] of Object.entries(programs)) {
  const [command, ...rest] = program(`${base}/${name}/${seconds}`);
  const child = spawn(command, rest, { stdio: 'ignore' });
  const ended = new Promise(done => child.on('exit', () => done(true)));
  const key = `${name} ${seconds}`;
  const first = async () => { while (!requests[key]) await new Promise(r => setTimeout(r, 100)); };
  await Promise.race([first(), ended]);
  const gaveUp = await Promise.race([ended, new Promise(done => setTimeout(() => done(false), 6000))]);
  child.kill('SIGKILL');
  console.log(`Retry-After: ${seconds}, ${name}: ${gaveUp ? 'gives up' : 'waits'} after ${requests[key]} request(s)`);
}
server.close();
process.exit(0);
END
probe node probe.mjs "$PYTHON"

expect "a Retry-After of an hour: two SDKs sleep, one hurries, one gives up" <<'END'
Retry-After: 1, anthropic-python: gives up after 3 request(s)
Retry-After: 1, openai-python: gives up after 3 request(s)
Retry-After: 1, anthropic-typescript: gives up after 3 request(s)
Retry-After: 1, openai-typescript: gives up after 3 request(s)
Retry-After: 90, anthropic-python: waits after 1 request(s)
Retry-After: 90, openai-python: waits after 1 request(s)
Retry-After: 90, anthropic-typescript: waits after 1 request(s)
Retry-After: 90, openai-typescript: gives up after 3 request(s)
Retry-After: 3600, anthropic-python: waits after 1 request(s)
Retry-After: 3600, openai-python: gives up after 1 request(s)
Retry-After: 3600, anthropic-typescript: waits after 1 request(s)
Retry-After: 3600, openai-typescript: gives up after 3 request(s)
END
