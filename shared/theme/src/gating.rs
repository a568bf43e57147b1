//! Gating: selects the files of a theme that an agent should see for a request, and how much of each.
//!
//! An agent cannot edit a file that was left out. So the gate passes more files than the lookup returns as targets: the
//! targets, the neighbours of the most certain targets, the file that the person has open, and the files that the
//! request names. A long file is shown as its outline with the lines to look at first; the agent can read the rest
//! itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::describe::Feature;
use super::history::History;
use super::index::ThemeIndex;
use super::lookup::Lookup;
use super::path::FileKind;
use super::text::LineRange;

/// Files with more characters than this are shown as an outline.
pub const OUTLINED_CHARACTERS: u32 = 16_000;

/// The files that an agent should see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gate {
    /// From the lookup: whether a file to edit is likely among the first three targets.
    pub confident: bool,
    /// Targets first, best first.
    pub files: Vec<GatedFile>,
    /// How many files of the theme were left out.
    pub left_out: usize,
}

/// A file that passed the gate, and how to show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GatedFile {
    pub path: String,
    pub kind: FileKind,
    pub why: Passed,
    pub bytes: u32,
    pub lines: u32,
    /// The lines to look at first.
    pub ranges: Vec<LineRange>,
    /// What is where. Set only for a file that is too long to be shown whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outline: Option<Vec<Feature>>,
}

/// Why a file passed the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Passed {
    /// The request is about it.
    Target,
    /// The person has it open.
    Active,
    /// It is a neighbour of a target.
    Related,
}

impl ThemeIndex {
    /// The files to show for a request, at most `limit`. Files that the request names are targets of the lookup.
    pub fn gate(&self, request: &str, active_file: Option<&str>, limit: usize) -> Gate {
        self.gate_of(self.lookup(request, active_file, limit), active_file, limit)
    }

    /// [`gate`](Self::gate) that knows what was asked and edited before.
    pub fn gate_with_history(
        &self,
        request: &str,
        active_file: Option<&str>,
        limit: usize,
        history: &History,
    ) -> Gate {
        let lookup = self.lookup_with_history(request, active_file, limit, history);
        self.gate_of(lookup, active_file, limit)
    }

    fn gate_of(&self, lookup: Lookup, active_file: Option<&str>, limit: usize) -> Gate {
        let mut files: Vec<GatedFile> = Vec::new();
        let targets = lookup.targets.into_iter().map(|target| (target.path, Passed::Target, target.ranges));
        let active = active_file.map(|path| (path.to_owned(), Passed::Active, Vec::new()));
        let related = lookup.related.into_iter().map(|related| (related.path, Passed::Related, Vec::new()));
        for (path, why, ranges) in targets.chain(active).chain(related) {
            if files.len() < limit && files.iter().all(|file| file.path != path) {
                files.extend(self.gated(&path, why, ranges));
            }
        }
        Gate { confident: lookup.confident, left_out: self.len() - files.len(), files }
    }

    fn gated(&self, path: &str, why: Passed, ranges: Vec<LineRange>) -> Option<GatedFile> {
        let record = &self.files[self.file(path)? as usize];
        Some(GatedFile {
            path: path.to_owned(),
            kind: record.kind,
            why,
            bytes: record.bytes,
            lines: record.lines,
            ranges,
            outline: (record.characters > OUTLINED_CHARACTERS).then(|| self.outline(path)).flatten(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Change, EditedFile};
    use crate::tests::{harbour, harbour::FILES};

    #[test]
    fn a_gate_passes_targets_then_the_open_file_then_neighbours() {
        let index = harbour();
        let gate = index.gate("cart drawer overlay color", Some("layout/theme.liquid"), 12);
        let why: Vec<Passed> = gate.files.iter().map(|file| file.why).collect();
        let place = |passed| why.iter().position(|&why| why == passed);
        assert_eq!(place(Passed::Target), Some(0));
        assert!(gate.files.iter().any(|file| file.path == "layout/theme.liquid"));
        assert!(place(Passed::Related).is_none_or(|at| why[at..].iter().all(|&why| why == Passed::Related)));
        assert_eq!(gate.left_out, FILES.len() - gate.files.len());
        assert!(gate.files.iter().all(|file| file.outline.is_none()), "all are short");
        assert_eq!(index.gate("cart", Some("no/such.liquid"), 2).files.len(), 2);
        let change = Change {
            request: "darker".into(),
            files: vec![EditedFile { path: "sections/footer.liquid".into(), lines: Vec::new() }],
            hours: 0.0,
        };
        let again = index.gate_with_history("a bit more", None, 5, &History::new([change]));
        assert_eq!(again.files[0].path, "sections/footer.liquid");
        let nothing = index.gate("xyzzy", None, 5);
        assert_eq!((nothing.files.len(), nothing.confident), (0, false));
    }

    #[test]
    fn a_long_file_is_shown_as_its_outline() {
        let rules: String = (0..1_000).map(|n| format!(".drawer-{n} {{ color: red; }}\n")).collect();
        let index = ThemeIndex::build([("assets/drawer.css", rules.as_str())]).unwrap();
        let gate = index.gate("drawer color", None, 3);
        let outline = gate.files[0].outline.as_ref().unwrap();
        assert_eq!((outline.len(), outline[999].name.as_str()), (1_000, "drawer-999"));
        assert!(!gate.files[0].ranges.is_empty());
    }

    #[test]
    fn length_is_counted_in_characters() {
        let check = |characters: usize, is_outlined: bool| {
            let comment = "é".repeat(characters - ".drawer {}/**/".len());
            let index =
                ThemeIndex::build([("assets/drawer.css", format!(".drawer {{}}/*{comment}*/"))]).unwrap();
            let index = ThemeIndex::from_blob(&index.to_blob()).unwrap();
            let gate = index.gate("drawer", None, 3);
            assert_eq!(gate.files[0].outline.is_some(), is_outlined, "{characters} characters");
        };
        check(OUTLINED_CHARACTERS as usize, false);
        check(OUTLINED_CHARACTERS as usize + 1, true);
    }
}
