//! Progress of the enrichment: a model describes a theme's files.
//!
//! The work that remains is never stored. It is computed: all files of the theme that have no note for their current
//! content. So if an enrichment dies, the next process continues it, and duplicate messages write nothing twice. The
//! record stores who works on it, which object holds the notes, what the notes cost, and how the last pass ended for
//! which version of the theme.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::theme::ThemeState;
use crate::background::lease::Lease;
use crate::ids::ImportId;
use crate::models::Stop;

/// How long a worker may be silent before another worker may take over.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// The enrichment record of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Enrichment {
    /// The current worker, who may write the notes. The id distinguishes a late writer from the worker that took over, even if
    /// the item was deleted and created again in between.
    pub hold: Option<Lease<Uuid>>,
    /// The object that holds the notes. Every object has a new name, so a worker that lost its lease deletes only its
    /// own object.
    pub notes: Option<Uuid>,
    /// How many files have a note, and how many should have one, when the files were last listed.
    pub written: u64,
    pub wanted: u64,
    /// Cost of all calls, in micro-dollars.
    pub cost_micros: i64,
    /// Cost of the calls since the last pass ended, in micro-dollars.
    pub pass_micros: i64,
    /// The model that was called last.
    pub model: Option<String>,
    /// How the last pass ended.
    pub end: Option<PassEnd>,
}

/// The version of a theme: its generation and revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThemeRevision {
    pub generation: ImportId,
    pub revision: u64,
}

impl ThemeRevision {
    #[must_use]
    pub fn of(theme: &ThemeState) -> Self {
        Self { generation: theme.generation, revision: theme.revision }
    }
}

/// How a pass ended, and for which version of the theme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassEnd {
    pub of: ThemeRevision,
    /// Why it stopped early. `None` if it finished.
    pub stop: Option<Stop>,
}

/// The state of an enrichment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnrichmentPhase {
    /// The project has not enabled enrichment.
    Off,
    /// No model is configured.
    Unavailable,
    /// Files need a description, or nobody has checked yet.
    Waiting,
    Working,
    Done,
    /// `reason` says why. It continues after the next change of the theme, or when the project asks for it again.
    Stopped,
}

/// The progress of an enrichment, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EnrichmentStatus {
    pub state: EnrichmentPhase,
    /// How many files have a note, of those that should have one.
    pub files_written: u64,
    /// How many files should have a note. Images, minified files, stored settings and translations are not counted.
    pub files_wanted: u64,
    /// Cost of all calls so far, in micro-dollars.
    pub cost_micros: i64,
    /// The model that was called last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why enrichment is unavailable or stopped, or why it is done although some files have no note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Enrichment {
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.hold.is_some_and(|hold| !hold.is_over(now))
    }

    /// Whether `by` still holds it.
    #[must_use]
    pub fn is_held_by(&self, by: Uuid) -> bool {
        self.hold.is_some_and(|hold| hold.is_held_by(by))
    }

    /// Takes or renews the hold.
    #[must_use]
    pub fn held(mut self, by: Uuid, now: Timestamp) -> Self {
        self.hold = Some(Lease::take(by, now, LEASE));
        self
    }

    /// Releases the hold. The next worker continues the pass.
    #[must_use]
    pub fn released(mut self) -> Self {
        self.hold = None;
        self
    }

    /// Releases the hold and ends the pass.
    #[must_use]
    pub fn ended(mut self, end: PassEnd) -> Self {
        self.hold = None;
        self.pass_micros = 0;
        self.end = Some(end);
        self
    }

    /// Forgets why the last pass stopped, because somebody asked for enrichment again.
    #[must_use]
    pub fn retry_requested(mut self) -> Self {
        self.end = self.end.filter(|end| end.stop.is_none());
        self
    }

    /// How the last pass ended, if it was for this version of the theme.
    fn end_of(&self, theme: &ThemeState) -> Option<&PassEnd> {
        self.end.as_ref().filter(|end| end.of == ThemeRevision::of(theme))
    }

    /// Whether a worker should take the hold now. The map comes first: while files change, no file is sent to a model.
    #[must_use]
    pub fn is_due(&self, theme: &ThemeState, now: Timestamp) -> bool {
        let has_ended = self.end_of(theme).is_some_and(|end| match &end.stop {
            None => true,
            Some(stop) => stop.again_at.is_none_or(|again| now < again),
        });
        theme.is_current() && !self.is_held(now) && !has_ended
    }

    /// The status that clients see. `this` is `None` if the project has not enabled enrichment.
    #[must_use]
    pub fn status(this: Option<&Self>, theme: &ThemeState, now: Timestamp) -> EnrichmentStatus {
        let Some(this) = this else {
            return EnrichmentStatus {
                state: EnrichmentPhase::Off,
                files_written: 0,
                files_wanted: 0,
                cost_micros: 0,
                model: None,
                reason: None,
            };
        };
        let (state, reason) = match this.end_of(theme) {
            _ if this.is_held(now) => (EnrichmentPhase::Working, None),
            _ if theme.revision == 0 => (EnrichmentPhase::Done, None),
            None => (EnrichmentPhase::Waiting, None),
            Some(PassEnd { stop: Some(stop), .. }) if stop.unavailable => {
                (EnrichmentPhase::Unavailable, Some(stop.reason.clone()))
            }
            Some(PassEnd { stop: Some(stop), .. }) => (EnrichmentPhase::Stopped, Some(stop.reason.clone())),
            Some(PassEnd { stop: None, .. }) => {
                let lack = this.wanted.saturating_sub(this.written);
                let reason =
                    format!("the model gave no usable answer about {lack} files, after two tries each");
                (EnrichmentPhase::Done, Some(reason).filter(|_| lack > 0))
            }
        };
        EnrichmentStatus {
            state,
            files_written: this.written,
            files_wanted: this.wanted,
            cost_micros: this.cost_micros,
            model: this.model.clone(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projects::theme::tests::map;

    fn theme(revision: u64, mapped: u64) -> ThemeState {
        ThemeState { revision, map: Some(map(mapped)), ..ThemeState::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ended(revision: u64, stop: Option<Stop>) -> Enrichment {
        Enrichment::default().ended(PassEnd { of: ThemeRevision::of(&theme(revision, revision)), stop })
    }

    fn stop(again_at: Option<i64>) -> Option<Stop> {
        Some(Stop { unavailable: false, reason: "enough".into(), again_at: again_at.map(at) })
    }

    #[test]
    fn an_enrichment_has_one_phase_and_is_due_if_work_remains() {
        use EnrichmentPhase as P;
        let by = Uuid::from_u128(1);
        let check = |it: &Enrichment, theme: &ThemeState, state: P, due: bool| {
            let status = Enrichment::status(Some(it), theme, at(100));
            assert_eq!((status.state, it.is_due(theme, at(100))), (state, due), "{it:?} {theme:?}");
        };
        let new = Enrichment::default();
        check(&new, &ThemeState::default(), P::Done, false);
        check(&new, &theme(1, 1), P::Waiting, true);
        check(&new, &theme(2, 1), P::Waiting, false);
        check(&new.clone().held(by, at(90)), &theme(1, 1), P::Working, false);
        check(&new.clone().held(by, at(40)), &theme(1, 1), P::Waiting, true);
        check(&new.clone().held(by, at(90)).released(), &theme(1, 1), P::Waiting, true);
        check(&ended(1, None), &theme(1, 1), P::Done, false);
        check(&ended(1, None), &theme(2, 1), P::Waiting, false);
        check(&ended(1, None), &theme(2, 2), P::Waiting, true);
        check(&ended(1, stop(None)), &theme(1, 1), P::Stopped, false);
        check(&ended(1, stop(None)), &theme(2, 2), P::Waiting, true);
        check(&ended(1, stop(Some(101))), &theme(1, 1), P::Stopped, false);
        check(&ended(1, stop(Some(100))), &theme(1, 1), P::Stopped, true);
        check(&ended(1, stop(None)).retry_requested(), &theme(1, 1), P::Waiting, true);
        check(&ended(1, None).retry_requested(), &theme(1, 1), P::Done, false);
        let none = Stop { unavailable: true, reason: "no model".into(), again_at: None };
        check(&ended(1, Some(none)), &theme(1, 1), P::Unavailable, false);
        // The same revision of another generation is another version.
        let other = ThemeState { generation: ImportId::from_uuid(Uuid::from_u128(7)), ..theme(1, 1) };
        check(&ended(1, None), &other, P::Waiting, true);
        assert_eq!(Enrichment::status(None, &theme(1, 1), at(0)).state, P::Off);
    }

    #[test]
    fn a_hold_is_identified_by_its_id_and_a_pass_starts_at_zero_cost() {
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let it = Enrichment { pass_micros: 5, ..Enrichment::default() }.held(first, at(0));
        assert!(it.is_held_by(first) && it.is_held(at(59)) && !it.is_held(at(60)));
        let taken = it.held(second, at(60));
        assert!(taken.is_held_by(second) && !taken.is_held_by(first));
        assert_eq!(taken.clone().released().pass_micros, 5);
        let ended = taken.ended(PassEnd { of: ThemeRevision::of(&theme(1, 1)), stop: None });
        assert_eq!((ended.pass_micros, ended.hold), (0, None));
    }

    #[test]
    fn a_pass_with_missing_notes_says_so() {
        let it = Enrichment { written: 1, wanted: 3, ..ended(1, None) };
        let status = Enrichment::status(Some(&it), &theme(1, 1), at(0));
        assert!(status.reason.unwrap().contains("about 2 files"));
        let it = Enrichment { written: 3, ..it };
        assert_eq!(Enrichment::status(Some(&it), &theme(1, 1), at(0)).reason, None);
    }

    #[test]
    fn states_round_trip() {
        let it = ended(3, stop(Some(7))).held(Uuid::from_u128(3), at(1));
        let text = serde_json::to_string(&it).unwrap();
        assert_eq!(serde_json::from_str::<Enrichment>(&text).unwrap(), it);
        assert_eq!(serde_json::from_str::<Enrichment>("{}").unwrap(), Enrichment::default());
        for phase in ["off", "unavailable", "waiting", "working", "done", "stopped"] {
            let text = format!("\"{phase}\"");
            let read: EnrichmentPhase = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }
}
