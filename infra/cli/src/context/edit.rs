//! `context edit`: opens the document in the person's editor, and replaces the version that was read. A new document begins with
//! the headings of a plan.
//!
//! The person's text is kept in a file until the server has accepted it. If somebody else has changed the document meanwhile, both
//! texts are named and their difference is shown; `--from` continues with the person's text over the newer version.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;

use crate::Failure;
use crate::args::Document;
use crate::config::{self, Places};
use crate::output;
use crate::server::{Patience, Server, ServerError};
use crate::spool::{private_dir, write_private};

/// The beginning of a new document.
pub const BEGINNING: &str = "\
# Context Document

## Metadata
- Task:

## PLAN

### Decisions
-

### Notes
-
";

const COMMAND: &str = "context edit";

/// The version of a document that does not exist.
const NONE: &str = "\"0\"";

/// Reads, lets the person edit, writes.
///
/// # Errors
/// If the document can't be read or written, or the editor fails. The person's text is kept, and the message says where.
pub fn run(document: &Document, from: Option<&Path>) -> Result<(), Failure> {
    let text = from.map(text_of).transpose()?;
    let editor = editor(COMMAND)?;
    let settings = Places::look().read()?;
    output::warn(&settings.warnings);
    let path = super::path(document, &settings);
    let query = [("workflow", document.workflow.as_deref())];
    let server = Server::new(&settings, Patience::PERSON);
    let (before, etag) = match server.get(&path, &query) {
        Ok(read) => (String::from_utf8_lossy(&read.body).into_owned(), read.etag),
        Err(ServerError::Refused { status: 404, detail, .. }) if detail.contains("context document") => {
            (BEGINNING.to_owned(), Some(NONE.to_owned()))
        }
        Err(error) => return Err(error.into()),
    };

    let draft = Draft::begin("context-", COMMAND, text.as_deref().unwrap_or(&before))?;
    let Some(text) = open_editor(&editor, &draft, &before)? else {
        draft.discard()?;
        return Ok(output::print("nothing changed\n")?);
    };
    match server.put_markdown(&path, &query, &text, etag.as_deref()) {
        Ok(_) => {
            draft.discard()?;
            Ok(output::print("saved\n")?)
        }
        Err(error @ ServerError::Refused { status: 409 | 412, .. }) => {
            let now = server.get(&path, &query).map_err(|_| draft.kept(&error))?;
            Err(Failure::Message(draft.conflict(&before, &now.body, from)?))
        }
        Err(error) => Err(draft.kept(&error)),
    }
}

/// The text of the file that `--from` names.
///
/// # Errors
/// If it can't be read.
pub fn text_of(from: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(from)
        .map_err(|error| Failure::Message(format!("failed to read {}: {error}", from.display())))
}

/// The file that a person edits.
pub struct Draft {
    path: PathBuf,
    /// The command that can continue with it.
    command: &'static str,
}

impl Draft {
    /// # Errors
    /// If the file can't be written.
    pub fn begin(prefix: &str, command: &'static str, text: &str) -> io::Result<Self> {
        let dir = config::state_dir().unwrap_or_else(env::temp_dir).join("edits");
        private_dir(&dir)?;
        // Editors recognise the format by the ending.
        let file = tempfile::Builder::new().prefix(prefix).suffix(".md").tempfile_in(&dir)?;
        let (_, path) = file.keep().map_err(|error| error.error)?;
        write_private(&path, text.as_bytes())?;
        Ok(Self { path, command })
    }

    /// # Errors
    /// If the file can't be deleted.
    pub fn discard(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }

    /// The error, and where the text is.
    #[must_use]
    pub fn kept(&self, error: &ServerError) -> Failure {
        let (path, command) = (self.path.display(), self.command);
        Failure::Message(format!(
            "{error}\nyour text is kept in {path}; `lamplighter {command} --from {path}` tries again"
        ))
    }

    /// Describes the conflict, and how to continue.
    ///
    /// # Errors
    /// If a file can't be written.
    pub fn conflict(&self, before: &str, now: &[u8], from: Option<&Path>) -> io::Result<String> {
        let theirs = self.path.with_extension("theirs.md");
        write_private(&theirs, now)?;
        let diff = difference(("as you read it", before), ("as it is now", &String::from_utf8_lossy(now)));
        let (mine, theirs) = (self.path.display(), theirs.display());
        let command = self.command;
        let again = if from.is_some() { "again " } else { "" };
        Ok(format!(
            "the document has changed {again}since you read it; nothing was overwritten\n\n{diff}\n\
             your text:       {mine}\ncurrent text:    {theirs}\n\
             to continue:     merge the current text into yours, then `lamplighter {command} --from {mine}`"
        ))
    }
}

/// How the second text differs from the first one, each with its name. Empty if there is no `diff`.
#[must_use]
pub fn difference((old_name, old): (&str, &str), (new_name, new): (&str, &str)) -> String {
    let diff = || {
        let texts = [old, new].map(|text| {
            let mut file = tempfile::NamedTempFile::new()?;
            file.write_all(text.as_bytes())?;
            Ok::<_, io::Error>(file)
        });
        let [old, new] = texts;
        let (old, new) = (old?, new?);
        let files = [old.path(), new.path()];
        Command::new("diff").args(["-u", "-L", old_name, "-L", new_name]).args(files).output()
    };
    diff().map(|diff| String::from_utf8_lossy(&diff.stdout).into_owned()).unwrap_or_default()
}

/// Editors that need a terminal. Without one, they wait for ever or do nothing.
const NEED_A_TERMINAL: [&str; 12] =
    ["vi", "vim", "nvim", "view", "nano", "pico", "micro", "hx", "helix", "kak", "joe", "mg"];

/// The person's editor, with its arguments.
///
/// # Errors
/// If it needs a terminal and there is none.
pub fn editor(command: &str) -> Result<String, Failure> {
    let named = |name| env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let chosen = named("VISUAL").or_else(|| named("EDITOR"));
    let editor = chosen.unwrap_or_else(|| "vi".to_owned());
    let program = editor.split_whitespace().next().and_then(|program| program.rsplit('/').next());
    let needs_terminal = program.is_some_and(|program| NEED_A_TERMINAL.contains(&program));
    if needs_terminal && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::Message(format!(
            "the editor `{editor}` needs a terminal, and there is none; set EDITOR to one that does not, such as \
             `code --wait`, or write a file and run `EDITOR=true lamplighter {command} --from FILE`"
        )));
    }
    Ok(editor)
}

/// Lets the person edit, and returns the text if it differs from the one before.
///
/// # Errors
/// If the editor fails or the file can't be read.
pub fn open_editor(editor: &str, draft: &Draft, before: &str) -> Result<Option<String>, Failure> {
    let path = &draft.path;
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status()?;
    if status.success() {
        let text = fs::read_to_string(path)?;
        return Ok((text != before).then_some(text));
    }
    let path = path.display();
    let hint = if status.code() == Some(127) { "; set EDITOR to an editor that is installed" } else { "" };
    Err(Failure::Message(format!(
        "the editor `{editor}` failed ({status}){hint}; your text is kept in {path}"
    )))
}
