//! E-mails through a mail server that a person names.
//!
//! The connection goes only where the guard allows it, and TLS begins here and not in the library, for two reasons. The addresses are the
//! checked ones. And after `STARTTLS`, the library would still read what a stranger has put between the server's consent and the first
//! encrypted byte; here, nothing is read ahead, so it breaks the handshake.

use std::error::Error as _;
use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use base::https;
use base::reach::{connect, encrypt};
use domain::ids::DeliveryId;
use domain::notices::channels::{Answer, MAIL_PORTS, MailServer, Security, TIMEOUT};
use domain::notices::inert::visible;
use domain::notices::render::Email;
use domain::reach::{CheckedServer, check_server};
use domain::text::quoting::short_line;
use jiff::Timestamp;
use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use crate::context::Cx;

/// What a mail server may send in one conversation, in bytes.
const MOST: usize = 64 << 10;

/// What it may send before the encryption begins, in bytes.
const MOST_BEFORE: usize = 8 << 10;

/// The longest words of a server that are shown, in bytes.
const MAX_WORDS: usize = 200;

/// How long the end of a conversation may take. The mail is delivered then.
const GOODBYE: Duration = Duration::from_secs(2);

/// Sends an e-mail. Returns the answer, and what went wrong, for a person.
pub(super) async fn send(cx: &Cx, id: DeliveryId, to: &MailServer, email: &Email) -> (Answer, String) {
    let reach = &cx.config.reach;
    // The operator may have changed what is allowed since the channel was added.
    let server = match check_server(&to.host, to.port, &MAIL_PORTS, &reach.policy) {
        Ok(server) if to.security != Security::None || server.is_allowed() => server,
        Ok(_) => return (Answer::None, format!("{} is refused without encryption", to.host)),
        Err(reason) => return (Answer::None, format!("{} is refused: {reason}", to.host)),
    };
    let (envelope, mail) = match built(id, to, email, cx.clock.now()) {
        Ok(built) => built,
        Err(problem) => return (Answer::None, format!("the e-mail can't be built: {problem}")),
    };
    let roots = reach.mail_authorities.as_deref();
    let sent = talk(&server, to, &envelope, &mail, roots);
    let limit = Duration::try_from(TIMEOUT).unwrap_or_default();
    match tokio::time::timeout(limit, sent).await {
        Ok(Ok(())) => (Answer::Status { code: 200, retry_after: None }, String::new()),
        Ok(Err(Failed { answer, why })) => (answer, why),
        Err(_) => (Answer::None, format!("{server} did not answer within {} seconds", limit.as_secs())),
    }
}

/// Why an e-mail was not sent.
struct Failed {
    answer: Answer,
    why: String,
}

impl Failed {
    fn none(why: impl Into<String>) -> Self {
        Self { answer: Answer::None, why: why.into() }
    }
}

/// What the server was asked when it refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Hello,
    Login,
    Sender,
    Recipient,
    Mail,
}

/// What a refusal means. It shows the server's own words.
fn refused(asked: Asked, server: &CheckedServer, error: &SmtpError) -> Failed {
    let Some(code) = error.status() else {
        // The library's words for what the server has said wrong. They do not repeat what we have sent.
        return Failed::none(match error.is_client() {
            true if asked == Asked::Login => {
                let why = format!("{server} offers no way to log in that is supported: PLAIN or LOGIN");
                return Failed { answer: Answer::Refused, why };
            }
            _ => format!("the connection to {server} broke, or its answer is not SMTP"),
        });
    };
    let what = match asked {
        Asked::Hello => "does not talk to us",
        Asked::Login => "refuses the user or the password",
        Asked::Sender => "refuses the sender",
        Asked::Recipient => "refuses the recipient",
        Asked::Mail => "refuses the mail",
    };
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    let answer = match (u16::from(code), asked) {
        // The account is not accepted, or it needs one.
        (530 | 534 | 535 | 538, _) => Answer::Refused,
        (500..=599, Asked::Login) => Answer::Refused,
        (500..=599, Asked::Recipient) => Answer::Bounced { is_permanent: true },
        _ => Answer::Bounced { is_permanent: false },
    };
    let words = format!("{code} {}", visible(&said));
    Failed { answer, why: format!("{server} {what}: {}", short_line(words.trim_end(), MAX_WORDS)) }
}

/// The mail with its envelope.
fn built(
    id: DeliveryId,
    to: &MailServer,
    email: &Email,
    now: Timestamp,
) -> Result<(Envelope, Vec<u8>), String> {
    let address = |text: &str| text.parse::<Address>().map_err(|error| error.to_string());
    let (from, recipient) = (address(&to.from)?, address(&to.to)?);
    // It is the same in every try, so a server may recognise the second one.
    let message_id = format!("<{id}@{}>", from.domain());
    let body = MultiPart::alternative_plain_html(email.text.clone(), email.html.clone());
    let mut message = Message::builder()
        .from(Mailbox::new(None, from))
        .to(Mailbox::new(None, recipient))
        .subject(visible(&email.subject))
        .date(UNIX_EPOCH + Duration::from_secs(now.as_second().unsigned_abs()))
        .message_id(Some(message_id))
        .multipart(body)
        .map_err(|error| error.to_string())?;
    for (name, value) in &email.headers {
        let name = HeaderName::new_from_ascii((*name).to_owned()).map_err(|error| error.to_string())?;
        message.headers_mut().insert_raw(HeaderValue::new(name, visible(value)));
    }
    Ok((message.envelope().clone(), message.formatted()))
}

/// The TLS of mail servers: the public authorities, and those that the operator has added.
fn tls(more: Option<&RootCertStore>) -> Arc<ClientConfig> {
    Arc::new(match more {
        None => https::tls(),
        Some(more) => {
            let mut roots = https::public();
            roots.roots.extend(more.roots.iter().cloned());
            https::trusting(roots)
        }
    })
}

async fn talk(
    server: &CheckedServer,
    to: &MailServer,
    envelope: &Envelope,
    mail: &[u8],
    roots: Option<&RootCertStore>,
) -> Result<(), Failed> {
    let hello = ClientId::default();
    let mut stream = connect(server).await.map_err(|error| Failed::none(error.to_string()))?;
    let peer = stream.peer_addr().map_err(|error| Failed::none(error.to_string()))?;
    let insecure = |error: io::Error| {
        Failed::none(format!("{server} has no valid certificate, or the connection broke: {error}"))
    };
    let stream: Box<dyn AsyncTokioStream> = match to.security {
        Security::None => Box::new(Limited { inner: stream, said: b"", left: MOST, peer }),
        Security::Tls => {
            let inner = encrypt(stream, server, tls(roots)).await.map_err(insecure)?;
            Box::new(Limited { inner, said: b"", left: MOST, peer })
        }
        Security::Starttls => {
            starttls(&mut stream, server, &hello).await?;
            let inner = encrypt(stream, server, tls(roots)).await.map_err(insecure)?;
            // The server has greeted before the encryption, and the library waits for a greeting.
            Box::new(Limited { inner, said: b"220 encrypted\r\n", left: MOST, peer })
        }
    };
    let told = |asked: Asked| move |error: SmtpError| refused(asked, server, &error);
    let connected = AsyncSmtpConnection::connect_with_transport(stream, &hello).await;
    let mut smtp = connected.map_err(told(Asked::Hello))?;
    if let (Some(user), Some(secret)) = (&to.user, &to.secret) {
        let credentials = Credentials::new(user.clone(), secret.clone());
        smtp.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await.map_err(told(Asked::Login))?;
    }
    let sender = Mail::new(envelope.from().cloned(), Vec::new());
    smtp.command(sender).await.map_err(told(Asked::Sender))?;
    for recipient in envelope.to() {
        let recipient = Rcpt::new(recipient.clone(), Vec::new());
        smtp.command(recipient).await.map_err(told(Asked::Recipient))?;
    }
    smtp.command(Data).await.map_err(told(Asked::Mail))?;
    smtp.message(mail).await.map_err(told(Asked::Mail))?;
    // Whatever follows, the server has the mail.
    let _ = tokio::time::timeout(GOODBYE, smtp.quit()).await;
    Ok(())
}

/// Asks for encryption. Without the server's consent, nothing else is sent.
async fn starttls(stream: &mut TcpStream, server: &CheckedServer, hello: &ClientId) -> Result<(), Failed> {
    let mut left = MOST_BEFORE;
    let greeting = answer(stream, server, &mut left).await?;
    greeting.expect(220, server, "does not talk to us")?;
    let answered = ask(stream, server, &format!("EHLO {hello}\r\n"), &mut left).await?;
    answered.expect(250, server, "does not talk to us")?;
    let offers = |line: &String| {
        line.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("STARTTLS"))
    };
    if !answered.lines.iter().skip(1).any(offers) {
        return Err(Failed::none(format!(
            "{server} offers no encryption with STARTTLS, so nothing was sent to it"
        )));
    }
    ask(stream, server, "STARTTLS\r\n", &mut left).await?.expect(220, server, "refuses to encrypt")
}

/// An answer before the encryption.
struct Said {
    code: u16,
    lines: Vec<String>,
}

impl Said {
    fn expect(&self, code: u16, server: &CheckedServer, what: &str) -> Result<(), Failed> {
        if self.code == code {
            return Ok(());
        }
        let words = format!("{} {}", self.code, visible(&self.lines.join(" ")));
        let why = format!("{server} {what}: {}", short_line(words.trim_end(), MAX_WORDS));
        Err(Failed { answer: Answer::Bounced { is_permanent: false }, why })
    }
}

async fn ask(
    stream: &mut TcpStream,
    server: &CheckedServer,
    command: &str,
    left: &mut usize,
) -> Result<Said, Failed> {
    let broke = |_| Failed::none(format!("the connection to {server} broke"));
    stream.write_all(command.as_bytes()).await.map_err(broke)?;
    answer(stream, server, left).await
}

/// Reads an answer, and no byte more: what follows `STARTTLS` belongs to the encryption.
async fn answer(stream: &mut TcpStream, server: &CheckedServer, left: &mut usize) -> Result<Said, Failed> {
    let broke = || Failed::none(format!("the connection to {server} broke, or its answer is not SMTP"));
    let mut said = Said { code: 0, lines: Vec::new() };
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            *left = left.checked_sub(1).ok_or_else(broke)?;
            line.push(stream.read_u8().await.map_err(|_| broke())?);
        }
        let line = String::from_utf8_lossy(&line);
        let (code, rest) = line.trim_end().split_at_checked(3).ok_or_else(broke)?;
        said.code = code.parse().map_err(|_| broke())?;
        said.lines.push(rest.get(1..).unwrap_or_default().to_owned());
        match rest.as_bytes().first() {
            Some(b'-') => {}
            None | Some(b' ') => return Ok(said),
            Some(_) => return Err(broke()),
        }
    }
}

/// A connection whose server may not send without an end. `said` is read first.
#[derive(Debug)]
struct Limited<S> {
    inner: S,
    said: &'static [u8],
    left: usize,
    peer: SocketAddr,
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + Debug> AsyncTokioStream for Limited<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.said.is_empty() {
            let (now, later) = self.said.split_at(self.said.len().min(buf.remaining()));
            buf.put_slice(now);
            self.said = later;
            return Poll::Ready(Ok(()));
        }
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other("the server sends too much")));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.left = self.left.saturating_sub(buf.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn mail(subject: &str, text: &str) -> String {
        let email = Email {
            subject: subject.to_owned(),
            text: text.to_owned(),
            html: format!("<p>{text}</p>"),
            headers: vec![("X-Test", "a\r\nBcc: b@example.com".to_owned())],
        };
        let to = MailServer {
            host: "smtp.example.com".to_owned(),
            port: 465,
            security: Security::Tls,
            user: None,
            secret: None,
            from: "lamp@example.com".to_owned(),
            to: "me@example.net".to_owned(),
        };
        let id = DeliveryId::from_uuid(Uuid::from_u128(7));
        let (envelope, mail) = built(id, &to, &email, "2026-11-22T09:00:00Z".parse().unwrap()).unwrap();
        assert_eq!(envelope.to().iter().map(ToString::to_string).collect::<Vec<_>>(), ["me@example.net"]);
        assert_eq!(envelope.from().map(ToString::to_string).as_deref(), Some("lamp@example.com"));
        assert!(mail.is_ascii(), "no server has to know 8BITMIME");
        String::from_utf8(mail).unwrap()
    }

    /// The names of the headers before the first empty line. A header that is folded has further lines.
    fn names(mail: &str) -> Vec<&str> {
        let (head, _) = mail.split_once("\r\n\r\n").unwrap();
        let own = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
        own.map(|line| line.split_once(':').unwrap().0).collect()
    }

    #[test]
    fn no_text_adds_a_header_or_ends_the_mail() {
        let plain = mail("Report", "text");
        for subject in [
            "a\r\nBcc: b@example.com",
            "a\nBcc: b@example.com",
            "a\rBcc: b@example.com",
            "a\r\n\r\nbody",
            "ä\r\nBcc: b@example.com",
            &format!("{}\r\nBcc: b@example.com", "long ".repeat(30)),
            "a\u{85}b\u{2028}c\0d",
            "=?utf-8?q?a=0D=0ABcc:_b=40example.com?=",
        ] {
            let hostile = mail(subject, "a\r\n.\r\nMAIL FROM:<x@example.com>\r\nQUIT");
            assert_eq!(names(&hostile), names(&plain), "{subject:?}: {hostile}");
            assert!(!hostile.contains("\r\nBcc:") && !hostile.contains('\0'), "{subject:?}: {hostile}");
        }
    }

    #[test]
    fn a_second_try_has_the_same_message_id() {
        let (first, second) = (mail("a", "b"), mail("a", "b"));
        let id = |mail: &str| mail.lines().find(|line| line.starts_with("Message-ID:")).unwrap().to_owned();
        assert_eq!(id(&first), id(&second));
        assert!(id(&first).ends_with("@example.com>"), "{first}");
        assert!(first.contains("\r\nDate: Sun, 22 Nov 2026 09:00:00 +0000\r\n"), "{first}");
    }
}
