"""Verifies messages with the library of Standard Webhooks, as a receiver does.

Reads a JSON list of messages from standard input, each with `secret`, `headers` and `body`, and prints a line for each.
"""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for message in json.load(sys.stdin):
    try:
        Webhook(message["secret"]).verify(message["body"], message["headers"])
        print("verified")
    except WebhookVerificationError as error:
        print(f"refused: {error}")
