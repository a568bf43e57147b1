//! The text that the client of a stream has.
//!
//! Text that was sent cannot be taken back. If a process dies, another one writes the step again, and the text of the first
//! attempt is void. The client gets only what is new; if the new text differs, a note says that the reply begins again.

/// Separates a void text from the text that replaces it.
const AGAIN: &str = "\n\n*The reply was interrupted here and begins again:*\n\n";

#[derive(Debug, Default)]
pub struct Told {
    text: String,
    /// The id of each event with text, and where its text begins.
    marks: Vec<(u64, usize)>,
    rewrite: Option<Rewrite>,
}

/// A step that is written again.
#[derive(Debug)]
struct Rewrite {
    /// Where its void text begins.
    from: usize,
    /// What was written since. So far it is the same as the beginning of the void text.
    again: String,
}

impl Told {
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes the text of an event. Returns what the client must get.
    #[must_use]
    pub fn add(&mut self, event: u64, text: &str) -> String {
        let Some(mut rewrite) = self.rewrite.take() else { return self.say(event, text.to_owned()) };
        rewrite.again.push_str(text);
        let void = &self.text[rewrite.from..];
        if let Some(new) = rewrite.again.strip_prefix(void) {
            let new = new.to_owned();
            return self.say(event, new);
        }
        if void.starts_with(&rewrite.again) {
            self.rewrite = Some(rewrite);
            return String::new();
        }
        self.replace(event, rewrite)
    }

    /// The text of the events from `void_from` on is void.
    pub fn restart(&mut self, void_from: u64) {
        let first = self.marks.iter().find(|(event, _)| *event >= void_from);
        self.rewrite = first.map(|(_, from)| Rewrite { from: *from, again: String::new() });
    }

    /// The step has no more text. Returns what the client must get.
    #[must_use]
    pub fn end_step(&mut self, event: u64) -> String {
        match self.rewrite.take() {
            Some(rewrite) => self.replace(event, rewrite),
            None => String::new(),
        }
    }

    fn replace(&mut self, event: u64, Rewrite { from, again }: Rewrite) -> String {
        self.marks.retain(|(_, at)| *at < from);
        self.text.push_str(AGAIN);
        AGAIN.to_owned() + &self.say(event, again)
    }

    fn say(&mut self, event: u64, text: String) -> String {
        if !text.is_empty() {
            self.marks.push((event, self.text.len()));
            self.text.push_str(&text);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Told {
        let mut told = Told::default();
        assert_eq!(told.add(2, "One. "), "One. ");
        assert_eq!(told.add(5, "Two "), "Two ");
        assert_eq!(told.add(6, "and thr"), "and thr");
        told.restart(4);
        told
    }

    #[test]
    fn the_same_text_comes_once() {
        let mut told = told();
        assert_eq!(told.add(8, "Two and"), "");
        assert_eq!(told.add(9, " three."), "ee.");
        assert_eq!(told.add(10, " Four."), " Four.");
        assert_eq!(told.end_step(11), "");
        assert_eq!(told.text(), "One. Two and three. Four.");
    }

    #[test]
    fn another_text_comes_after_a_note() {
        let mut told = told();
        assert_eq!(told.add(8, "Two"), "");
        assert_eq!(told.add(9, " or three"), format!("{AGAIN}Two or three"));
        // The second process dies, too: what it wrote is void, and comes once.
        told.restart(4);
        assert_eq!(told.add(11, "Two or three"), "");
        assert_eq!(told.add(12, "."), ".");
        assert_eq!(told.text(), format!("One. Two and thr{AGAIN}Two or three."));
    }

    #[test]
    fn a_shorter_text_comes_after_a_note() {
        let mut told = told();
        assert_eq!(told.add(8, "Two"), "");
        assert_eq!(told.end_step(9), format!("{AGAIN}Two"));
        assert_eq!(told.end_step(10), "");
    }

    #[test]
    fn a_step_that_had_no_text_begins_again_silently() {
        let mut told = told();
        assert_eq!(told.add(8, "Two and three."), "ee.");
        told.restart(9);
        assert_eq!(told.add(10, "Two"), "Two");
        let mut told = Told::default();
        told.restart(2);
        assert_eq!(told.add(4, "One"), "One");
    }
}
