//! A message as words, so that the rules compare words and not letters.

use std::collections::BTreeSet;

/// How much of a message is read, in characters. What follows is pasted text more often than a request.
const MOST_CHARACTERS: usize = 4_096;

/// The most characters that a file's name has.
const LONGEST_NAME: usize = 200;

/// The kinds of files that a theme has.
const EXTENSIONS: [&str; 8] = [".liquid", ".css", ".scss", ".js", ".ts", ".json", ".svg", ".html"];

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// First in a sentence.
    Sentence,
    /// First after a comma, a dash or a bracket.
    Clause,
    Inside,
}

#[derive(Clone, Debug)]
pub struct Word {
    /// In small letters without accents. A quotation is the word `"`.
    pub text: String,
    pub place: Place,
}

/// A message as words.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub words: Vec<Word>,
    /// For each sentence: where its words start, and whether it ends with a question mark.
    pub sentences: Vec<Sentence>,
    /// The names of the files it mentions, without folders.
    pub files: BTreeSet<String>,
    /// How many points of a list it has.
    pub points: usize,
    /// How many texts it quotes.
    pub quotes: usize,
    /// Whether only its beginning was read.
    pub is_cut: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Sentence {
    pub start: usize,
    pub end: usize,
    pub is_question: bool,
}

impl Text {
    /// Reads a message once, from left to right.
    #[must_use]
    pub fn read(message: &str) -> Self {
        let mut letters = Vec::new();
        let mut is_cut = false;
        for (at, letter) in message.chars().enumerate() {
            if at == MOST_CHARACTERS {
                is_cut = true;
                break;
            }
            fold(letter, &mut letters);
        }
        let files = files_in(&letters);
        let marks = quotations(&letters);
        let mut text = words_of(&letters, Some(&marks));
        if text.words.iter().all(|word| word.text == "\"") {
            text = words_of(&letters, None);
        }
        text.files = files;
        text.is_cut = is_cut;
        text
    }

    /// The words of a sentence.
    #[must_use]
    pub fn of(&self, sentence: Sentence) -> &[Word] {
        &self.words[sentence.start..sentence.end]
    }
}

/// Small letters without accents, plain quotation marks, no combining marks.
fn fold(letter: char, into: &mut Vec<char>) {
    for small in letter.to_lowercase() {
        match small {
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => into.push('a'),
            'ç' => into.push('c'),
            'è' | 'é' | 'ê' | 'ë' => into.push('e'),
            'ì' | 'í' | 'î' | 'ï' => into.push('i'),
            'ñ' => into.push('n'),
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' => into.push('o'),
            'ù' | 'ú' | 'û' | 'ü' => into.push('u'),
            'ß' => into.extend(['s', 's']),
            'œ' => into.extend(['o', 'e']),
            'æ' => into.extend(['a', 'e']),
            '‘' | '’' | '‚' | '‛' | '´' => into.push('\''),
            '“' | '”' | '„' | '«' | '»' | '‟' => into.push('"'),
            '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{feff}' => {}
            '…' => into.push('.'),
            _ if small.is_whitespace() && small != '\n' => into.push(' '),
            _ => into.push(small),
        }
    }
}

/// The names of theme files that the text mentions.
fn files_in(letters: &[char]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for part in
        letters.split(|letter| letter.is_whitespace() || matches!(letter, ',' | ';' | ':' | '(' | ')'))
    {
        if part.len() > LONGEST_NAME {
            continue;
        }
        let part: String = part.iter().collect();
        let name = part.trim_matches(|letter: char| !letter.is_alphanumeric());
        let name = name.rsplit('/').next().unwrap_or(name);
        if EXTENSIONS.iter().any(|extension| name.len() > extension.len() && name.ends_with(extension)) {
            files.insert(name.to_owned());
        }
    }
    files
}

/// For each letter: whether it is part of a quotation or of a block of code. What is quoted is what the theme
/// says or should say, so it does not say what the person wants.
fn quotations(letters: &[char]) -> Vec<bool> {
    let mut marks = vec![false; letters.len()];
    let mut opened: Option<(char, usize)> = None;
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(at + 1);
        let is_fence = letters[at..].starts_with(&['`', '`', '`']);
        let width = if is_fence { 3 } else { 1 };
        match opened {
            None => {
                let opens = match letter {
                    '"' | '`' | '[' => true,
                    '\'' => {
                        before.is_none_or(|before| !before.is_alphanumeric())
                            && after.is_some_and(|after| after.is_alphanumeric())
                    }
                    _ => false,
                };
                if opens {
                    opened = Some((if is_fence { '~' } else { letter }, at));
                }
            }
            Some((with, from)) => {
                let closes = match with {
                    '~' => is_fence,
                    '`' => letter == '`' && !is_fence,
                    '[' => letter == ']',
                    '\'' => letter == '\'' && after.is_none_or(|after| !after.is_alphanumeric()),
                    _ => letter == with,
                };
                if closes {
                    marks[from..at + width].fill(true);
                    opened = None;
                }
            }
        }
        at += width;
    }
    marks
}

fn words_of(letters: &[char], marks: Option<&[bool]>) -> Text {
    let is_marked = |at: usize| marks.is_some_and(|marks| marks.get(at).copied().unwrap_or(false));
    let mut text = Text::default();
    let mut place = Place::Sentence;
    let mut begun = 0;
    let mut is_line_start = true;
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        if is_marked(at) {
            while is_marked(at) {
                at += 1;
            }
            text.quotes += 1;
            text.words.push(Word { text: "\"".to_owned(), place });
            place = Place::Inside;
            is_line_start = false;
            continue;
        }
        if letter.is_alphanumeric() || letter == '#' {
            let start = at;
            at += 1;
            while at < letters.len() && !is_marked(at) && continues(letters, at) {
                at += 1;
            }
            let word: String = letters[start..at].iter().collect();
            let is_number = word.len() <= 2 && word == (text.points + 1).to_string();
            let is_point = is_number
                && matches!(letters.get(at), Some('.' | ')'))
                && letters.get(at + 1).is_none_or(|after| after.is_whitespace());
            if is_point {
                text.points += 1;
                text.close(&mut begun, false);
                place = Place::Sentence;
                at += 1;
            } else if word != "#" {
                text.words.push(Word { text: word, place });
                place = Place::Inside;
            }
            is_line_start = false;
            continue;
        }
        match letter {
            '.' | '!' | ';' | '?' | '\n' | '¿' | '¡' => {
                text.close(&mut begun, letter == '?');
                place = Place::Sentence;
                is_line_start = letter == '\n' || (is_line_start && letter != '.');
            }
            '-' | '*' | '•' if is_line_start && letters.get(at + 1) == Some(&' ') => {
                text.points += 1;
                place = Place::Sentence;
                is_line_start = false;
            }
            ',' | ':' | '(' | ')' | '–' | '—' => {
                if place != Place::Sentence {
                    place = Place::Clause;
                }
                is_line_start = false;
            }
            '-' if letters.get(at + 1) == Some(&' ') && at > 0 && letters[at - 1] == ' ' => {
                if place != Place::Sentence {
                    place = Place::Clause;
                }
            }
            ' ' => {}
            _ => is_line_start = false,
        }
        at += 1;
    }
    text.close(&mut begun, false);
    text
}

impl Text {
    /// Ends the sentence that has begun at the word `begun`.
    fn close(&mut self, begun: &mut usize, is_question: bool) {
        if *begun < self.words.len() {
            self.sentences.push(Sentence { start: *begun, end: self.words.len(), is_question });
            *begun = self.words.len();
        } else if is_question && let Some(last) = self.sentences.last_mut() {
            last.is_question = true;
        }
    }
}

/// Whether the letter belongs to the word before it.
fn continues(letters: &[char], at: usize) -> bool {
    let is_between = || {
        letters[at - 1].is_alphanumeric() && letters.get(at + 1).is_some_and(|after| after.is_alphanumeric())
    };
    match letters[at] {
        '.' | '\'' | '_' => is_between(),
        '%' => letters[at - 1].is_numeric(),
        letter => letter.is_alphanumeric(),
    }
}

/// Where a phrase stands for the first time. A word of the phrase that ends with `*` stands for each word that
/// starts so. Each word of a phrase stands for its plural with an `s`.
#[must_use]
pub fn find(words: &[Word], phrase: &str) -> Option<usize> {
    let (first, rest) = phrase.split_once(' ').map_or((phrase, None), |(first, rest)| (first, Some(rest)));
    (0..words.len()).find(|at| {
        stands_for(first, &words[*at].text)
            && rest.is_none_or(|rest| {
                let mut after = words[at + 1..].iter();
                rest.split(' ').all(|asked| after.next().is_some_and(|word| stands_for(asked, &word.text)))
            })
    })
}

/// Whether a word of a phrase stands for this word.
fn stands_for(asked: &str, word: &str) -> bool {
    if let Some(start) = asked.strip_suffix('*') {
        return word.starts_with(start);
    }
    word == asked || (word.len() > 4 && word.strip_suffix('s') == Some(asked))
}

/// The first of the phrases that the words have.
#[must_use]
pub fn any_of(words: &[Word], phrases: &[&'static str]) -> Option<&'static str> {
    phrases.iter().copied().find(|phrase| find(words, phrase).is_some())
}

#[must_use]
pub fn has(words: &[Word], phrases: &[&'static str]) -> bool {
    any_of(words, phrases).is_some()
}
