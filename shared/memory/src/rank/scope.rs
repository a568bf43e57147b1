//! What a query may see, and the statistics of it.

use crate::dates::Day;
use crate::index::{Index, LivePart, Loaded};
use crate::language::Languages;
use crate::search::Query;
use crate::segment::PartRow;

/// The parts that a query may see. All statistics are of these documents alone, so what is in other namespaces changes
/// nothing.
pub(super) struct Scope {
    /// For each segment, for each part.
    pub allowed: Vec<Vec<bool>>,
    pub documents: u32,
    pub mean_len: f32,
    pub sessions: u32,
    /// For each session, its number of terms. 0 for sessions that the query may not see.
    pub session_lens: Vec<u64>,
    pub mean_session_len: f32,
    pub languages: Languages,
    pub first_day: Day,
}

impl Scope {
    pub fn of(index: &Index, query: &Query<'_>) -> Self {
        let (mut documents, mut len) = (0, 0);
        let mut is_session = vec![false; index.sessions];
        let mut session_lens = vec![0; index.sessions];
        let mut languages = Languages::default();
        let mut first_day = Day::MAX;
        let mut allowed = Vec::with_capacity(index.segments.len());
        for Loaded { segment, parts, .. } in &index.segments {
            let may = |(live, part): (&LivePart, &PartRow)| {
                let is_kind = query.kinds.is_empty() || query.kinds.contains(&part.kind);
                let is_place =
                    query.namespace.is_none_or(|namespace| segment.part_namespace(part) == namespace);
                if !live.is_live || !is_kind || !is_place || part.documents.is_empty() {
                    return false;
                }
                documents += part.documents.len() as u32;
                len += live.len;
                is_session[live.session as usize] = true;
                session_lens[live.session as usize] += live.len;
                languages = languages.and(live.languages);
                first_day = first_day.min(part.date.unwrap_or(Day::MAX));
                true
            };
            allowed.push(parts.iter().zip(&segment.parts).map(may).collect());
        }
        let sessions = is_session.iter().filter(|is| **is).count() as u32;
        let mean = |count: u32| (len as f32 / count.max(1) as f32).max(1.0);
        Self {
            allowed,
            documents,
            mean_len: mean(documents),
            sessions,
            session_lens,
            mean_session_len: mean(sessions),
            languages,
            first_day,
        }
    }
}
