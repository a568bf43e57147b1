//! How far a model's descriptions of a theme's files have come.
//!
//! What is to be written is never stored: it is the theme's files without those that have a note of their content. So an
//! enrichment that dies anywhere is gone on with by whoever looks next, and nothing that comes twice is written twice.
//! Stored is who is at it, where the notes lie, what they cost, and how the last pass ended, by the theme it ended for.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::theme::ThemeState;
use crate::ids::ImportId;

/// How long whoever enriches may be silent before another may take over.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// Where the enrichment of a project stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Enrichment {
    /// Who is at it.
    pub hold: Option<Hold>,
    /// The object that the notes are in. None has the name of another, so that who comes too late deletes only its own.
    pub notes: Option<Uuid>,
    /// How many files have a note, and how many are to have one, of the files that were seen last.
    pub written: u64,
    pub wanted: u64,
    /// Of all calls, in micro-dollars.
    pub cost_micros: i64,
    /// Of the calls since the last pass ended.
    pub pass_micros: i64,
    /// The one that was asked last.
    pub model: Option<String>,
    /// How the last pass ended.
    pub end: Option<PassEnd>,
}

/// Who may write the notes. The id tells a late writer from the one that took over, also where the item was deleted and
/// made anew between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub by: Uuid,
    pub until: Timestamp,
}

/// The theme as it was at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub generation: ImportId,
    pub revision: u64,
}

impl Moment {
    #[must_use]
    pub fn of(theme: &ThemeState) -> Self {
        Self { generation: theme.generation, revision: theme.revision }
    }
}

/// How a pass ended, and for which files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassEnd {
    pub of: Moment,
    /// Why it was not done; nothing where it was.
    pub stop: Option<Stop>,
}

/// Why a pass ended before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Whether there is no model at all.
    pub unavailable: bool,
    /// For people.
    pub reason: String,
    /// When it may be tried again without a change of the theme; never where nothing is said.
    pub again_at: Option<Timestamp>,
}

/// How far an enrichment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnrichmentPhase {
    /// The project does not want it.
    Off,
    /// No model is configured.
    Unavailable,
    /// Files are to be described, or nobody has looked whether they are.
    Waiting,
    Working,
    Done,
    /// `reason` says why. It goes on with the next change of the theme, or when the project asks for it again.
    Stopped,
}

/// How far an enrichment is, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EnrichmentStatus {
    pub state: EnrichmentPhase,
    /// How many files have a note, of those that are to have one.
    pub files_written: u64,
    /// How many are to have one: images, minified files, stored settings and translations are not among them.
    pub files_wanted: u64,
    /// Of all calls so far, in micro-dollars.
    pub cost_micros: i64,
    /// The one that was asked last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it is unavailable or stopped, or why it is done with fewer notes than files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Enrichment {
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.hold.is_some_and(|hold| hold.until > now)
    }

    /// Whether nobody took over.
    #[must_use]
    pub fn is_held_by(&self, by: Uuid) -> bool {
        self.hold.is_some_and(|hold| hold.by == by)
    }

    /// Takes hold of it, or holds on.
    #[must_use]
    pub fn held(mut self, by: Uuid, now: Timestamp) -> Self {
        self.hold = Some(Hold { by, until: now + LEASE });
        self
    }

    /// Lets it go; a pass goes on with whoever is next.
    #[must_use]
    pub fn released(mut self) -> Self {
        self.hold = None;
        self
    }

    /// Lets it go with the pass at its end.
    #[must_use]
    pub fn ended(mut self, end: PassEnd) -> Self {
        self.hold = None;
        self.pass_micros = 0;
        self.end = Some(end);
        self
    }

    /// Forgets why it stopped: somebody asks for it again.
    #[must_use]
    pub fn asked_again(mut self) -> Self {
        self.end = self.end.filter(|end| end.stop.is_none());
        self
    }

    /// How the last pass ended, where that was for these files.
    fn end_of(&self, theme: &ThemeState) -> Option<&PassEnd> {
        self.end.as_ref().filter(|end| end.of == Moment::of(theme))
    }

    /// Whether somebody should take hold of it now. The map comes first: while files change, nobody is sent them.
    #[must_use]
    pub fn is_due(&self, theme: &ThemeState, now: Timestamp) -> bool {
        let has_ended = self.end_of(theme).is_some_and(|end| match &end.stop {
            None => true,
            Some(stop) => stop.again_at.is_none_or(|again| now < again),
        });
        theme.is_current() && !self.is_held(now) && !has_ended
    }

    /// What a project that wants it is told; `None` is one that does not.
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
                let reason = format!("the model gave no usable answer about {lack} files, twice each");
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
        Enrichment::default().ended(PassEnd { of: Moment::of(&theme(revision, revision)), stop })
    }

    fn stop(again_at: Option<i64>) -> Option<Stop> {
        Some(Stop { unavailable: false, reason: "enough".into(), again_at: again_at.map(at) })
    }

    #[test]
    fn an_enrichment_is_in_one_phase_and_due_where_something_is_to_do() {
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
        check(&ended(1, stop(None)).asked_again(), &theme(1, 1), P::Waiting, true);
        check(&ended(1, None).asked_again(), &theme(1, 1), P::Done, false);
        let none = Stop { unavailable: true, reason: "no model".into(), again_at: None };
        check(&ended(1, Some(none)), &theme(1, 1), P::Unavailable, false);
        // The same revision of another generation is another theme.
        let other = ThemeState { generation: ImportId::from_uuid(Uuid::from_u128(7)), ..theme(1, 1) };
        check(&ended(1, None), &other, P::Waiting, true);
        assert_eq!(Enrichment::status(None, &theme(1, 1), at(0)).state, P::Off);
    }

    #[test]
    fn a_hold_is_told_by_its_id_and_a_pass_begins_with_nothing_spent() {
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let it = Enrichment { pass_micros: 5, ..Enrichment::default() }.held(first, at(0));
        assert!(it.is_held_by(first) && it.is_held(at(59)) && !it.is_held(at(60)));
        let taken = it.held(second, at(60));
        assert!(taken.is_held_by(second) && !taken.is_held_by(first));
        assert_eq!(taken.clone().released().pass_micros, 5);
        let ended = taken.ended(PassEnd { of: Moment::of(&theme(1, 1)), stop: None });
        assert_eq!((ended.pass_micros, ended.hold), (0, None));
    }

    #[test]
    fn what_is_done_with_less_than_all_says_so() {
        let it = Enrichment { written: 1, wanted: 3, ..ended(1, None) };
        let status = Enrichment::status(Some(&it), &theme(1, 1), at(0));
        assert!(status.reason.unwrap().contains("about 2 files"));
        let it = Enrichment { written: 3, ..it };
        assert_eq!(Enrichment::status(Some(&it), &theme(1, 1), at(0)).reason, None);
    }

    #[test]
    fn states_read_as_they_are_written() {
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
