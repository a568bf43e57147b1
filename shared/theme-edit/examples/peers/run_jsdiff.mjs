// Applies unified diffs with jsdiff: `node run_jsdiff.mjs FOLDER`, where FOLDER/node_modules has the package `diff`.
// One JSON object a line comes in, one goes out.
// In:  {before, edit}: a text, and a diff of one file.
// Out: {ok, text, nanoseconds, why}: the text afterwards, and the time of `applyPatch`, which reads the diff, too:
// the best of three runs.
import { createRequire } from 'node:module';

const require = createRequire(`${process.argv[2]}/package.json`);
let diff;
try {
  diff = require('diff');
} catch (error) {
  console.log(JSON.stringify({ missing: error.message.split('\n')[0] }));
  process.exit(0);
}
console.log(JSON.stringify({ version: require('diff/package.json').version }));
let rest = '';
for await (const part of process.stdin.setEncoding('utf8')) {
  const lines = (rest + part).split('\n');
  rest = lines.pop();
  lines.forEach(answer);
}

function answer(line) {
  const { before, edit } = JSON.parse(line);
  let [text, why] = [false, 'applyPatch returned false'];
  let nanoseconds = Infinity;
  for (let run = 0; run < 3; run++) {
    const start = process.hrtime.bigint();
    try {
      text = diff.applyPatch(before, edit);
    } catch (error) {
      why = error.message;
    }
    nanoseconds = Math.min(nanoseconds, Number(process.hrtime.bigint() - start));
  }
  const ok = text !== false;
  console.log(JSON.stringify({ ok, text: ok ? text : before, nanoseconds, why: ok ? '' : why }));
}
