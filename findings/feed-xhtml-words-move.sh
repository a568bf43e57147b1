#!/usr/bin/env bash
# Guess:    a feed parser hands over the text of an Atom entry as it was written.
# Reality:  rss-parser moves the words. Content of type "xhtml" (the type that Atom's own specification uses
#           in its example) is parsed into an object that keeps text and child elements apart, and is then
#           written again: first all the text of an element, then all its children. "is <b>not</b> final"
#           becomes "is  final<b>not</b>". No error, no warning; `contentSnippet` is made from the moved text.
#           The date is a second trap: `isoDate` and `pubDate` are the date of the first publication, and
#           `updated` is dropped. Whoever asks "what is newer than my last look" never sees a correction.
# Others:   feedsmith and feedparser keep the order and both dates.
# Versions: rss-parser 3.13.0, feedsmith 3.0.1 (npm), feedparser 6.0.14 (PyPI).
# Why:      an agent that watches release notes or prices summarises a sentence that nobody wrote, and its
#           quotation of the source is not in the source.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages rss-parser@3.13.0 feedsmith@3.0.1
pip_packages feedparser==6.0.14

cat > "$WORK/feed.xml" <<'END'
<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title>Notices</title><id>urn:example:notices</id><updated>2026-11-29T10:00:00Z</updated>
  <entry>
    <title>Prices</title><id>urn:example:1</id><link href="https://example.org/1"/>
    <published>2026-11-01T10:00:00Z</published><updated>2026-11-29T10:00:00Z</updated>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>The price is <b>not</b> final: it falls <i>only</i> in May.</p></div></content>
  </entry>
</feed>
END
cat > "$WORK/probe.mjs" <<'END'
import { readFileSync } from 'node:fs';
import Parser from 'rss-parser';
import { parseFeed } from 'feedsmith';
const text = readFileSync('feed.xml', 'utf8');
const [item] = (await new Parser().parseString(text)).items;
console.log('rss-parser content ', item.content.replace(/<\/?div[^>]*>/g, ''));
console.log('rss-parser snippet ', item.contentSnippet);
console.log('rss-parser dates   ', item.isoDate, item.pubDate, item.updated);
const [entry] = parseFeed(text).feed.entries;
console.log('feedsmith content  ', entry.content.value);
console.log('feedsmith dates    ', entry.published, entry.updated);
END
cat > "$WORK/probe.py" <<'END'
import feedparser
entry = feedparser.parse(open("feed.xml", "rb").read()).entries[0]
print("feedparser content ", entry.content[0].value)
print("feedparser dates   ", entry.published, entry.updated)
END
probe node probe.mjs
probe "$PYTHON" probe.py

expect "rss-parser moves the words of xhtml content and drops the date of the update" <<'END'
rss-parser content  <p>The price is  final: it falls  in May.<b>not</b><i>only</i></p>
rss-parser snippet  The price is  final: it falls  in May.notonly
rss-parser dates    2026-11-01T10:00:00.000Z 2026-11-01T10:00:00.000Z undefined
feedsmith content   <p>The price is <b>not</b> final: it falls <i>only</i> in May.</p>
feedsmith dates     2026-11-01T10:00:00Z 2026-11-29T10:00:00Z
feedparser content  <p>The price is <b>not</b> final: it falls <i>only</i> in May.</p>
feedparser dates    2026-11-01T10:00:00Z 2026-11-29T10:00:00Z
END
