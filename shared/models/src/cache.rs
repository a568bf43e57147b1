//! Where a request asks a provider to end cached prefixes.

use domain::models::{CacheTtl, ModelRequest};

/// The largest number of marks that the APIs accept.
const MAX_MARKS: usize = 4;

/// The end of a prefix that a provider should cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePoint {
    /// After the last tool.
    Tools,
    /// After the system block with this index, counted without blank blocks.
    System(usize),
    /// After the conversation.
    LastTurn,
}

/// The marks in the order of the request. Keeps the last four, because a later mark covers what an earlier one covers.
/// No mark lives longer than one before it.
pub(super) fn marks(request: &ModelRequest) -> Vec<(CachePoint, CacheTtl)> {
    let blocks = request.system.iter().filter(|block| !block.text.trim().is_empty());
    let system: Vec<(CachePoint, CacheTtl)> = blocks
        .enumerate()
        .filter_map(|(index, block)| Some((CachePoint::System(index), block.cache?)))
        .collect();
    let tools =
        system.first().filter(|_| !request.tools.is_empty()).map(|(_, ttl)| (CachePoint::Tools, *ttl));
    let last_turn = request.cache_last_turn.then_some((CachePoint::LastTurn, CacheTtl::FiveMinutes));
    let mut marks: Vec<_> = tools.into_iter().chain(system).chain(last_turn).collect();
    marks.drain(..marks.len().saturating_sub(MAX_MARKS));
    let mut longest = CacheTtl::OneHour;
    for (_, ttl) in &mut marks {
        if *ttl == CacheTtl::FiveMinutes {
            longest = CacheTtl::FiveMinutes;
        }
        *ttl = longest;
    }
    marks
}
