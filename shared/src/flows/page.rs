//! Lists: `limit` and `cursor` as input; `data`, `next_cursor`, `has_more` as output.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::ids::Owner;
use domain::validate::FieldErrors;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};

use crate::error::{Error, Result};
use crate::store::table::QueryPage;
use crate::store::{StoreError, Versioned};

pub const DEFAULT_LIMIT: usize = 50;
pub const MAX_LIMIT: usize = 200;

/// The longest cursor, in characters. A sort key has at most 1,024 bytes, and base64 makes it a third longer.
pub const MAX_CURSOR: usize = 2_048;

/// The query parameters of every list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// The number of entries, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Page<T> {
    /// The items, in order.
    pub data: Vec<T>,
    /// Send it as `cursor` to get the next page. It is absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether there is a next page.
    pub has_more: bool,
}

impl<T> Page<T> {
    #[must_use]
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        Page {
            data: self.data.into_iter().map(f).collect(),
            next_cursor: self.next_cursor,
            has_more: self.has_more,
        }
    }
}

impl PageQuery {
    /// # Errors
    /// If `limit` is out of range.
    pub fn limit(&self) -> Result<usize> {
        match self.limit {
            None => Ok(DEFAULT_LIMIT),
            Some(limit) if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
            Some(limit) => {
                Err(FieldErrors::one("limit", format!("must be 1 to {MAX_LIMIT}, is {limit}")).into())
            }
        }
    }

    /// The sort key after which to continue.
    ///
    /// # Errors
    /// If the cursor belongs to another list or another owner, or was changed.
    pub fn after(&self, owner: &Owner, list: &str) -> Result<Option<String>> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let refused = || Error::Invalid(FieldErrors::one("cursor", "is not a cursor of this list"));
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refused())?;
        let (tag, sort_key) = bytes.split_at_checked(8).ok_or_else(refused)?;
        let sort_key = String::from_utf8(sort_key.to_vec()).map_err(|_| refused())?;
        if tag == cursor_tag(owner, list, &sort_key) { Ok(Some(sort_key)) } else { Err(refused()) }
    }
}

/// A cursor is the last sort key with a tag of owner and list. The tag is not a signature and need not be one, because
/// a cursor only moves within the caller's own partition. The tag turns a mix-up into a clear error.
#[must_use]
pub fn cursor(owner: &Owner, list: &str, last_sort_key: &str) -> String {
    let mut bytes = cursor_tag(owner, list, last_sort_key).to_vec();
    bytes.extend_from_slice(last_sort_key.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn cursor_tag(owner: &Owner, list: &str, sort_key: &str) -> [u8; 8] {
    let hash = Sha256::new()
        .chain_update(owner.as_str())
        .chain_update([0])
        .chain_update(list)
        .chain_update([0])
        .chain_update(sort_key)
        .finalize();
    let mut tag = [0; 8];
    tag.copy_from_slice(&hash[..8]);
    tag
}

/// One page of the records that satisfy `keep`. `query` reads them (after a sort key, at most a number of records). A
/// page may be short although more records follow, because a filter must not make a request read without a limit.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid, and every error of `query`.
pub async fn filtered<'a, T: Send + 'a>(
    owner: &Owner,
    list: &str,
    page: &PageQuery,
    query: impl Fn(Option<String>, usize) -> BoxFuture<'a, Result<QueryPage<T>, StoreError>>,
    keep: impl Fn(&T) -> bool,
) -> Result<Page<Versioned<T>>> {
    let sift = |mut found: Vec<Record<T>>| {
        found.retain(|(_, record)| keep(&record.value));
        std::future::ready(Ok(found)).boxed()
    };
    sifted(owner, list, page, query, sift).await
}

/// A record with its sort key.
pub type Record<T> = (String, Versioned<T>);

/// Like [`filtered`], for filters that need more than the record itself: `sift` gets all records of a query at once.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid, and every error of `query` and `sift`.
pub async fn sifted<'a, T: Send + 'a>(
    owner: &Owner,
    list: &str,
    page: &PageQuery,
    query: impl Fn(Option<String>, usize) -> BoxFuture<'a, Result<QueryPage<T>, StoreError>>,
    sift: impl Fn(Vec<Record<T>>) -> BoxFuture<'a, Result<Vec<Record<T>>>>,
) -> Result<Page<Versioned<T>>> {
    /// The largest number of queries for one page.
    const QUERIES: usize = 10;
    let limit = page.limit()?;
    let mut after = page.after(owner, list)?;
    let mut data = Vec::new();
    for _ in 0..QUERIES {
        let found = query(after.take(), limit).await?;
        let end = found.last.is_none();
        after = found.last;
        for (sort_key, record) in sift(found.items).await? {
            data.push(record);
            if data.len() == limit {
                after = Some(sort_key);
                break;
            }
        }
        if end && data.len() < limit {
            return Ok(Page { data, next_cursor: None, has_more: false });
        }
        if data.len() == limit {
            break;
        }
    }
    // A full page may end exactly at the last record. One more query makes `has_more` exact.
    let more = match &after {
        None => false,
        Some(sort_key) => !query(Some(sort_key.clone()), 1).await?.items.is_empty(),
    };
    let next_cursor = after.filter(|_| more).map(|sort_key| cursor(owner, list, &sort_key));
    Ok(Page { data, has_more: next_cursor.is_some(), next_cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_bound_to_owner_and_list() {
        let (me, you) = (Owner::new("me").unwrap(), Owner::new("you").unwrap());
        let query = |cursor: &str| PageQuery { limit: None, cursor: Some(cursor.to_owned()) };
        let good = cursor(&me, "agents", "agt_1");
        assert_eq!(query(&good).after(&me, "agents").unwrap().as_deref(), Some("agt_1"));
        assert!(query(&good).after(&you, "agents").is_err());
        assert!(query(&good).after(&me, "assets").is_err());
        for bad in ["", "!", "AAAA", &good[1..], &format!("{good}A")] {
            assert!(query(bad).after(&me, "agents").is_err(), "{bad}");
        }
    }
}
