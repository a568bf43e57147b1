//! `chat`: one message to an agent and its reply, or a conversation.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use uuid::Uuid;

use super::api::{Api, patiently, unexpected};
use super::events::{Event, Events};
use super::names;
use super::screen::{Look, Screen, block, line, print_json, print_part};
use super::table::cut;
use super::values::Fields;
use crate::Failure;
use crate::args::Chat;
use crate::output;
use crate::server::{Patience, Server, ServerError};
use crate::url::segment;

/// The longest input that is read as a message, in bytes. The server's limit is 32,000 characters.
const LONGEST: u64 = 200_000;

/// The pauses before the connection is made again, in seconds. They begin anew when an event has come.
const PAUSES: [u64; 8] = [0, 1, 1, 2, 4, 8, 15, 30];

/// How much of a tool's input a line shows.
const STEP: usize = 100;

/// Talks to an agent.
///
/// # Errors
/// If the server refuses the message, does not answer, or the run fails.
pub fn run(api: Api, args: &Chat) -> Result<(), Failure> {
    let (agent, message) = names::agent_and_message(&api, args.agent.as_deref(), &args.message)?;
    let path = format!("/agents/{}/chat", segment(&agent));
    let chat = match (&args.chat, args.new) {
        (Some(id), _) => Some(chat_id(&api, &agent, id)?),
        (None, true) => None,
        (None, false) => latest(&api, &agent)?.map(|chat| chat.text("chat_id").to_owned()),
    };
    let talk = Talk::begin(api, path, args.json);
    if message.is_empty() && io::stdin().is_terminal() {
        let how = if chat.is_some() { "the latest chat goes on; --new begins another" } else { "a new chat" };
        talk.note(&format!("{how}. Ctrl-D ends it, Ctrl-C cancels a reply."));
        return talk.converse(chat, None, |_, _| Ok(false));
    }
    let message = if message.is_empty() { from_stdin()? } else { message };
    if message.trim().is_empty() {
        return Err(Failure::Message("the message is empty".to_owned()));
    }
    let run = talk.say(&message, chat.as_deref())?;
    if args.json {
        print_json(&run)?;
    }
    ended(&run)
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin().lock().take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// The chat with the newest message.
///
/// # Errors
/// If the server does not answer.
pub fn latest(api: &Api, agent: &str) -> Result<Option<Value>, Failure> {
    let mut chats = api.list(&format!("/agents/{}/chats", segment(agent)), &[], 200)?;
    let chats = chats["data"].as_array_mut().map(std::mem::take).unwrap_or_default();
    Ok(chats.into_iter().max_by(|one, other| one.text("updated_at").cmp(other.text("updated_at"))))
}

fn chat_id(api: &Api, agent: &str, called: &str) -> Result<String, Failure> {
    if names::digits("cht_", called) == Some(32) {
        return Ok(called.to_owned());
    }
    let chats = api.list(&format!("/agents/{}/chats", segment(agent)), &[], 200)?;
    names::id_in_list(called, "cht_", "chat", chats.items("data"), "chat_id", "title")
}

/// Whether the reply is what was asked for.
fn ended(run: &Value) -> Result<(), Failure> {
    match run.text("state") {
        "failed" => Err(Failure::Message(format!(
            "the run has failed: {} ({})",
            line(run["error"].text("detail")),
            line(run["error"].text("code"))
        ))),
        "cancelled" => Err(Failure::Message("the run was cancelled".to_owned())),
        _ => Ok(()),
    }
}

/// Turns of one conversation.
pub struct Talk {
    pub api: Api,
    path: String,
    /// Prints nothing but the finished run.
    silent: bool,
    /// The run that Ctrl-C cancels. Empty while a message is sent and has no run yet.
    current: Arc<Mutex<Option<String>>>,
}

impl Talk {
    /// `path` takes the messages.
    #[must_use]
    pub fn begin(api: Api, path: String, silent: bool) -> Self {
        let current = Arc::new(Mutex::new(None));
        let server = Server::new(&api.settings, Patience::PERSON);
        // Without this, Ctrl-C ends the program, and the run goes on.
        if let Ok(mut signals) = Signals::new([SIGINT]) {
            let current = current.clone();
            thread::spawn(move || interrupted(&mut signals, &server, &current));
        }
        Self { api, path, silent, current }
    }

    /// A line for the person beside the reply.
    pub fn note(&self, text: &str) {
        let screen = self.api.screen;
        if screen.is_terminal() && !self.silent {
            drop(print_part(&format!("{}\n", screen.painted(&line(text), Look::Dim))));
        }
    }

    /// Says `first`, if it is given, and then reads messages line by line. `after` sees each finished run, and says whether the
    /// conversation is over.
    ///
    /// # Errors
    /// If a message can't be sent. A run that fails does not end the conversation.
    pub fn converse(
        &self,
        mut chat: Option<String>,
        mut first: Option<String>,
        mut after: impl FnMut(&Self, &Value) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        loop {
            let message = match first.take() {
                Some(message) => message,
                None => match ask("› ")? {
                    Some(message) => message,
                    None => return Ok(()),
                },
            };
            if message.trim().is_empty() {
                continue;
            }
            let run = match self.say(message.trim(), chat.as_deref()) {
                Ok(run) => run,
                Err(failure @ Failure::Message(_)) if chat.is_some() => {
                    output::note(&failure.to_string());
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            chat = run.some("chat_id").map(str::to_owned).or(chat);
            if let Err(failure) = ended(&run) {
                output::note(&failure.to_string());
            }
            if after(self, &run)? {
                return Ok(());
            }
        }
    }

    /// Sends a message, and shows the reply as it comes. Returns the finished run.
    ///
    /// # Errors
    /// If the message is refused, or the server is not reached again after the connection was cut.
    pub fn say(&self, message: &str, chat: Option<&str>) -> Result<Value, Failure> {
        let mut body = json!({ "message": message });
        if let Some(chat) = chat {
            body["chat_id"] = json!(chat);
        }
        self.set_current(Some(String::new()));
        let done = self.follow(&body);
        self.set_current(None);
        let id = done?;
        let run = self.api.get(&format!("/runs/{}", segment(&id)), &[])?;
        self.tell_what_waits(&run);
        Ok(run)
    }

    /// Follows a turn to its end, over as many connections as it takes. Returns the id of its run.
    fn follow(&self, body: &Value) -> Result<String, Failure> {
        let key = Uuid::now_v7().to_string();
        let mut reader = Reader::new(self.api.screen, self.silent);
        let (mut failures, mut is_open) = (0, false);
        loop {
            match self.connect(&reader, body, &key) {
                Ok(None) => return reader.run.ok_or_else(unexpected),
                Ok(Some(stream)) => {
                    is_open = true;
                    let mut events = Events::new(stream);
                    while let Ok(Some(event)) = events.next() {
                        failures = if event.id.is_some() { 0 } else { failures };
                        let is_over = reader.read(&event);
                        self.set_current(reader.run.clone().or_else(|| Some(String::new())));
                        if is_over {
                            return reader.run.ok_or_else(unexpected);
                        }
                    }
                }
                // Under the same key, a message that is sent again begins one turn. A server that was never reached is tried twice.
                Err(error) if (is_open || failures == 0) && error.status().is_none() => {}
                Err(error) if is_open && may_pass(&error) => {}
                // The message was sent before, and the server is still beginning the turn. The answer may have been cut, too.
                Err(error)
                    if error.conflict() == Some("idempotency_in_flight")
                        || failures > 0 && error.conflict() == Some("") => {}
                Err(error) if error.conflict() == Some("turn_in_progress") => {
                    return Err(Failure::Message(
                        "another turn of this chat is under way; wait for its end, or begin another chat with --new".to_owned(),
                    ));
                }
                Err(error) => return Err(error.into()),
            }
            let Some(pause) = PAUSES.get(failures) else {
                let run = reader.run.as_deref().unwrap_or("--kind chat");
                return Err(Failure::Message(format!(
                    "the connection is lost, and {} can't be reached; the run may go on. `lamplighter runs {run}` shows it",
                    self.api.settings.url
                )));
            };
            failures += 1;
            thread::sleep(Duration::from_secs(*pause));
        }
    }

    /// A stream of the events that the reader has not seen. `None` if there are none and the run has ended.
    fn connect(
        &self,
        reader: &Reader,
        body: &Value,
        key: &str,
    ) -> Result<Option<Box<dyn Read>>, ServerError> {
        let server = &self.api.server;
        match &reader.run {
            None => patiently(|| server.post_events(&self.path, body, key))
                .map(|stream| Some(Box::new(stream) as Box<dyn Read>)),
            Some(run) => {
                let path = format!("/runs/{}/events", segment(run));
                let stream = patiently(|| server.events(&path, reader.last))?;
                Ok(stream.map(|stream| Box::new(stream) as Box<dyn Read>))
            }
        }
    }

    fn set_current(&self, run: Option<String>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    /// The proposals and the calls that wait for the person.
    fn tell_what_waits(&self, run: &Value) {
        if self.silent {
            return;
        }
        for proposal in run.items("proposals") {
            output::note(&format!(
                "a draft waits: {}; `lamplighter accept {}` takes it over",
                line(proposal.text("title")),
                line(proposal.text("proposal_id"))
            ));
        }
        if run.text("state") == "waiting" {
            output::note("the run waits for your answer; `lamplighter inbox` shows the question");
        }
    }
}

/// Whether another try to read the events may succeed.
fn may_pass(error: &ServerError) -> bool {
    error.status().is_none_or(|status| matches!(status, 429 | 500..))
}

/// Cancels the run of the moment. A second Ctrl-C, or one without a run, ends the program.
fn interrupted(signals: &mut Signals, server: &Server, current: &Mutex<Option<String>>) {
    let mut cancelled = None;
    for _ in signals.forever() {
        let run = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match run {
            Some(run) if !run.is_empty() && cancelled.as_ref() != Some(&run) => {
                output::note("cancelling; Ctrl-C again ends the program at once");
                if let Err(error) = server.post_json(&format!("/runs/{}/cancel", segment(&run)), &json!({})) {
                    output::note(&format!("the run goes on, because it can't be cancelled: {error}"));
                }
                cancelled = Some(run);
            }
            Some(_) => std::process::exit(1),
            None => {
                drop(print_part("\n"));
                std::process::exit(0);
            }
        }
    }
}

/// A line that the person writes. `None` at the end of the input.
///
/// # Errors
/// If the terminal can't be read.
pub fn ask(question: &str) -> io::Result<Option<String>> {
    drop(print_part(question));
    let mut answer = String::new();
    let read = io::stdin().lock().take(LONGEST).read_line(&mut answer)?;
    if read == 0 {
        drop(print_part("\n"));
        return Ok(None);
    }
    Ok(Some(answer))
}

/// Whether the person says yes.
///
/// # Errors
/// If the terminal can't be read.
pub fn confirmed(question: &str) -> io::Result<bool> {
    let answer = ask(&format!("{question} [y/N] "))?.unwrap_or_default();
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What is known of a turn, and what of it is on the screen.
struct Reader {
    run: Option<String>,
    /// The number of the last event.
    last: u64,
    screen: Screen,
    silent: bool,
    /// Whether the text is printed as it comes. Into a pipe, a step is printed when it is complete, because another process may
    /// begin it again, and what is printed can't be taken back.
    live: bool,
    /// Whether the cursor is at the beginning of a line.
    at_start: bool,
}

impl Reader {
    fn new(screen: Screen, silent: bool) -> Self {
        Self { run: None, last: 0, screen, silent, live: screen.is_terminal(), at_start: true }
    }

    /// Shows an event. Says whether it is the last one.
    fn read(&mut self, event: &Event) -> bool {
        if let Some(id) = event.id {
            // After a reconnection, nothing is shown twice.
            if id <= self.last {
                return false;
            }
            self.last = id;
        }
        let data = &event.data;
        match event.name.as_str() {
            "run.started" => self.run = data.some("run_id").map(str::to_owned),
            "message.delta" if self.live => self.print(&block(data.text("text"))),
            "message.completed" if self.live => self.end_line(),
            "message.completed" if !data.text("text").trim().is_empty() => {
                self.print(&block(data.text("text")));
                self.end_line();
            }
            "tool.requested" => {
                let input = if data["input"].is_null() { String::new() } else { data["input"].to_string() };
                self.step(&format!("· {} {}", data.text("tool"), cut(&line(&input), STEP)));
            }
            "tool.result" if data.is("is_error") => {
                self.step(&format!(
                    "· {} failed: {}",
                    data.text("tool"),
                    cut(&line(data.text("result")), STEP)
                ));
            }
            "step.restarted" => self.step("· another process goes on, and the step begins again"),
            "model.fallback" => {
                self.step(&format!("· {} answers instead of {}", data.text("to"), data.text("from")));
            }
            "history.cut" => self.step("· the oldest messages were summarised"),
            "call.waiting" => {
                self.step(&format!("· waits for you: {} ({})", data.text("tool"), data.text("why")));
            }
            "run.completed" | "run.failed" | "run.cancelled" | "run.waiting" => {
                self.end_line();
                return true;
            }
            _ => {}
        }
        false
    }

    /// A dim line between the texts of a terminal.
    fn step(&mut self, text: &str) {
        if self.live {
            self.end_line();
            let text = self.screen.painted(&line(text), Look::Dim);
            self.print(&text);
            self.end_line();
        }
    }

    fn print(&mut self, text: &str) {
        if self.silent || text.is_empty() {
            return;
        }
        // The reply is stored in any case, so a closed pipe ends only what is shown.
        self.silent = !matches!(print_part(text), Ok(true));
        self.at_start = text.ends_with('\n');
    }

    fn end_line(&mut self) {
        if !self.at_start {
            self.print("\n");
        }
        drop(io::stdout().flush());
    }
}
