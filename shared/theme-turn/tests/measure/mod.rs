//! How much of a theme a turn sends ahead, beside what the same files have as a whole.

use theme::ThemeIndex;
use theme::answers::ranges;
use theme::gating::Passed;
use theme_turn::classify::{Asked, Classified, classify, strategy_of};
use theme_turn::limits::limits_of;
use theme_turn::prompts::shown::{Candidate, Given, Row, given};
use theme_turn::prompts::{Parts, Shown, briefing, modules_for};

/// What a turn sends for a request, in characters.
#[derive(Debug)]
pub struct Measured {
    pub classified: Classified,
    /// The files that passed the gate, and those of them that the briefing shows.
    pub gated: usize,
    pub shown: usize,
    /// The whole briefing.
    pub briefing: usize,
    /// What of it is there without any file: what holds for the turn, and the modules.
    pub frame: usize,
    /// The files that the briefing shows, as a whole.
    pub shown_whole: usize,
    /// All files that passed the gate, as a whole.
    pub gated_whole: usize,
}

/// Measures a request. `files`: the path and the text of each file of the theme.
pub fn measure(index: &ThemeIndex, files: &[(String, String)], message: &str) -> Measured {
    let classified = classify(&Asked { message, ..Asked::default() }, None);
    let (mode, tier) = (classified.mode, classified.tier);
    let strategy = strategy_of(tier);
    let limits = limits_of(mode, tier, strategy);
    let gate = index.gate(message, None, limits.files);
    let text_of = |path: &str| files.iter().find(|(other, _)| other == path).map(|(_, text)| text.as_str());
    let gated: Vec<_> = gate
        .files
        .iter()
        .filter_map(|file| Some((file, text_of(&file.path)?, ranges(file.ranges.clone()))))
        .collect();
    let candidates = gated.iter().map(|(file, text, ranges)| Candidate {
        path: &file.path,
        // As long as a version is.
        version: "0123456789abcdef",
        text,
        why: match file.why {
            Passed::Target => "the request is about it",
            Passed::Active => "the person has it open",
            Passed::Related => "files above use it, or it uses them",
        },
        ranges,
        outline: file
            .outline
            .iter()
            .flatten()
            .map(|part| Row { first: part.lines.start, last: part.lines.end, name: &part.name })
            .collect(),
    });
    let given = given(candidates, limits.briefing_characters);
    let paths: Vec<&str> = gated.iter().map(|(file, ..)| file.path.as_str()).collect();
    let modules = modules_for(message, mode, &paths);
    let shown: Vec<Shown<'_>> = given.iter().map(Given::shown).collect();
    let told = |files: &[Shown<'_>]| {
        let parts = Parts { mode, strategy, family: None, modules: &modules, files, told: &[] };
        briefing(&parts).chars().count()
    };
    let characters = |paths: &mut dyn Iterator<Item = &str>| -> usize {
        paths.filter_map(text_of).map(|text| text.chars().count()).sum()
    };
    Measured {
        gated: gated.len(),
        shown: given.len(),
        briefing: told(&shown),
        frame: told(&[]),
        shown_whole: characters(&mut given.iter().map(|file| file.path)),
        gated_whole: characters(&mut paths.iter().copied()),
        classified,
    }
}
