"""A real mail server for one test: aiosmtpd.

Usage: mailserver.py plain|starttls|tls [CERTIFICATE KEY]

It listens at a free port of this machine and prints the port. Then it prints a line of JSON for each mail, as Python's own `email` reads
it. It knows the user `lamp`, who has the password `pässword`, and nobody whose address begins with `nobody`.
"""

import asyncio
import email
import email.policy
import json
import socket
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

MODE, *FILES = sys.argv[1:]


def login(server, session, envelope, mechanism, data):
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (b"lamp", "pässword".encode())
    return AuthResult(success=known, handled=False, auth_data=data if known else None)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody"):
            return "550 5.1.1 There is no nobody here"
        if address.startswith("later"):
            return "450 4.2.0 Greylisted, come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = [part for part in mail.walk() if not part.is_multipart()]
        told = {
            "sender": envelope.mail_from,
            "recipients": envelope.rcpt_tos,
            "encrypted": server.transport.get_extra_info("ssl_object") is not None,
            "user": session.auth_data.login.decode() if session.auth_data else None,
            "type": mail.get_content_type(),
            "headers": [[name, str(value)] for name, value in mail.items()],
            "parts": [[part.get_content_type(), part.get_content().replace("\r\n", "\n")] for part in parts],
            "defects": [str(defect) for part in mail.walk() for defect in part.defects],
            "longest": max(len(line) for line in envelope.content.split(b"\r\n")),
        }
        print(json.dumps(told), flush=True)
        return "250 OK"


def server(tls):
    return SMTP(
        Handler(),
        hostname="localhost",
        tls_context=tls if MODE == "starttls" else None,
        require_starttls=MODE == "starttls",
        authenticator=login,
        auth_require_tls=False,
    )


async def main():
    tls = None
    if MODE != "plain":
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*FILES)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = await asyncio.get_running_loop().create_server(
        lambda: server(tls), sock=listener, ssl=tls if MODE == "tls" else None
    )
    print(listener.getsockname()[1], flush=True)
    await serving.serve_forever()


asyncio.run(main())
