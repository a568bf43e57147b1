//! What an agent that uses the living documents of a project is told of them.

use domain::ids::{Owner, ProjectId};
use domain::living::Doc;
use domain::living::told::{MAX_TOLD, behind, block};
use futures::future::try_join_all;

use super::text_of;
use crate::context::Data;
use crate::error::{Error, Result};

/// What an agent is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The documents. Empty if there are none.
    pub documents: String,
    /// How far they are behind. Empty if they are not.
    pub behind: String,
}

/// What an agent is told of the documents of a project. Nothing if the project does not exist any more.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn told(data: &Data, owner: &Owner, project: Option<ProjectId>) -> Result<Told> {
    let Some(project) = project else { return Ok(Told::default()) };
    let (documents, changelog, sync) = futures::try_join!(
        data.store.living_documents(owner, project),
        data.store.changelog(owner, project),
        data.store.docs_sync(owner, project),
    )?;
    let mut room = MAX_TOLD as u64;
    let texts = documents.iter().map(|document| {
        let document = &document.value;
        let is_shown = document.bytes <= room;
        if is_shown {
            room -= document.bytes;
        }
        async move {
            if !is_shown {
                return Ok((String::new(), false));
            }
            match text_of(data, owner, project, document).await {
                Ok(text) => Ok((text, true)),
                // It was replaced after the record was read. The next turn sees the new text.
                Err(Error::NotFound(_)) => Ok((String::new(), false)),
                Err(error) => Err(error),
            }
        }
    });
    let texts = try_join_all(texts.collect::<Vec<_>>()).await?;
    let documents = documents.iter().zip(&texts).map(|(document, (text, is_shown))| {
        (Doc { name: &document.value.name, text }, document.value.bytes, *is_shown)
    });
    let documents: Vec<_> = documents.collect();
    let is_under_way = sync.is_some_and(|sync| !sync.value.has_ended());
    let behind = match documents.is_empty() {
        true => None,
        false => behind(changelog.value.commits().len(), is_under_way),
    };
    Ok(Told { documents: block(&documents).unwrap_or_default(), behind: behind.unwrap_or_default() })
}
