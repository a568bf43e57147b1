#!/usr/bin/env bash
# Guess:    `verify(body, headers)` of the Standard Webhooks and Svix libraries is one function: it takes the request's
#           headers, returns the parsed body, and throws the library's own error if it refuses.
# Reality:  - svix 2 returns nothing (undefined, None); standardwebhooks returns the parsed body. The usual line
#             `const event = wh.verify(body, headers)` goes on with `undefined` after a move to svix 2.
#           - In JavaScript, standardwebhooks wants a plain object. A `Headers` (what fetch handlers, Next.js and Hono
#             have) is "Missing required headers", though all three are there: only own properties are read.
#           - In Python, another sender's entry in the signature list that is not `version,base64` raises
#             ValueError or binascii.Error instead of WebhookVerificationError, *although a right signature follows*.
#             A handler which maps WebhookVerificationError to 401 answers 500, and the sender repeats the call.
#             The JavaScript library skips the entry.
#           - A signed body that is not JSON is a SyntaxError or JSONDecodeError after the check was passed: an error of `verify` does
#             not mean "forged".
# Versions: standardwebhooks 1.1.1, svix 2.5.0 (npm); standardwebhooks 1.1.0, svix 2.9.1 (PyPI).
# Why:      whoever receives our webhooks uses one of the four. The list holds two signatures while a secret rotates.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages standardwebhooks@1.1.1 svix@2.5.0
pip_packages standardwebhooks==1.1.0 svix==2.9.1

cat > "$WORK/probe.mjs" <<'END'
import { Webhook } from 'standardwebhooks';
import { Webhook as Svix } from 'svix';
const secret = 'whsec_' + Buffer.alloc(32, 'k').toString('base64');
const now = new Date(), body = '{"a":1}';
const ours = new Webhook(secret);
const headers = (text, before = '') => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(Math.floor(now / 1000)),
  'webhook-signature': before + ours.sign('msg_1', now, text),
});
const show = (what, run) => {
  try { console.log(`JavaScript, ${what}: returns ${JSON.stringify(run())}`); }
  catch (e) { console.log(`JavaScript, ${what}: ${e.constructor.name} (${e.message.split(',')[0]})`); }
};
show('standardwebhooks', () => ours.verify(body, headers(body)));
show('svix', () => new Svix(secret).verify(body, headers(body)));
show('standardwebhooks, Headers', () => ours.verify(body, new Headers(headers(body))));
show('svix, Headers', () => new Svix(secret).verify(body, new Headers(headers(body))));
show('standardwebhooks, another entry first', () => ours.verify(body, headers(body, 'other ')));
show('standardwebhooks, a signed body of plain text', () => ours.verify('hello', headers('hello')));
END
cat > "$WORK/probe.py" <<'END'
import base64, datetime
from standardwebhooks.webhooks import Webhook
import svix.webhooks

secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
now = datetime.datetime.now(datetime.timezone.utc)
ours = Webhook(secret)

def headers(text, before=""):
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": before + ours.sign("msg_1", now, text)}

def show(what, run):
    try:
        print(f"Python, {what}: returns {run()!r}")
    except Exception as error:
        print(f"Python, {what}: {type(error).__module__}.{type(error).__name__}")

body = '{"a":1}'
show("standardwebhooks", lambda: ours.verify(body, headers(body)))
show("svix", lambda: svix.webhooks.Webhook(secret).verify(body, headers(body)))
show("standardwebhooks, another entry first", lambda: ours.verify(body, headers(body, "other ")))
show("standardwebhooks, an entry with bad base64 first", lambda: ours.verify(body, headers(body, "v1,a ")))
show("svix, another entry first", lambda: svix.webhooks.Webhook(secret).verify(body, headers(body, "other ")))
show("standardwebhooks, a signed body of plain text", lambda: ours.verify("hello", headers("hello")))
END
probe node probe.mjs
probe "$PYTHON" probe.py

expect "verify returns, takes and throws different things" <<'END'
JavaScript, standardwebhooks: returns {"a":1}
JavaScript, svix: returns undefined
JavaScript, standardwebhooks, Headers: WebhookVerificationError (Missing required headers)
JavaScript, svix, Headers: WebhookVerificationError (Missing required headers)
JavaScript, standardwebhooks, another entry first: returns {"a":1}
JavaScript, standardwebhooks, a signed body of plain text: SyntaxError (Unexpected token 'h')
Python, standardwebhooks: returns {'a': 1}
Python, svix: returns None
Python, standardwebhooks, another entry first: builtins.ValueError
Python, standardwebhooks, an entry with bad base64 first: binascii.Error
Python, svix, another entry first: builtins.ValueError
Python, standardwebhooks, a signed body of plain text: json.decoder.JSONDecodeError
END
