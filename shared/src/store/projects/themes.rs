//! Themes: their states, files and imports. Contents are stored in S3 under their hashes.

use domain::ids::{ImportId, Owner, ProjectId};
use domain::projects::theme::{Import, ThemeFile, ThemeState};
use jiff::{SignedDuration, Timestamp};

use crate::store::keys;
use crate::store::table::{
    Condition, Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item,
};

/// How long the result of an import can be read.
pub(in crate::store) const IMPORT_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How many files one query reads.
const FILES_PAGE: usize = 1_000;

impl Store {
    /// The state of a theme. Version 0 if nothing was ever stored.
    pub async fn theme(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<Versioned<ThemeState>, StoreError> {
        let found = self.get(&keys::theme(owner, project)).await?;
        Ok(found.unwrap_or(Versioned { value: ThemeState::default(), version: 0 }))
    }

    /// Writes the state of a theme over the one that was read at `version`.
    pub async fn replace_theme(
        &self,
        owner: &Owner,
        project: ProjectId,
        state: &ThemeState,
        version: u64,
    ) -> Result<Written, StoreError> {
        let mut writes = vec![Self::theme_write(owner, project, state, version)?];
        writes.extend(Self::project_exists(owner, project));
        self.write_all(writes).await
    }

    fn theme_write(
        owner: &Owner,
        project: ProjectId,
        state: &ThemeState,
        version: u64,
    ) -> Result<Write, StoreError> {
        let (key, item) = (keys::theme(owner, project), item(state, &Extras::default())?);
        Ok(Write::over(key, version, item))
    }

    /// The write that updates a theme's revision and counts, for a transaction with the change of a file. It fails if
    /// the theme was switched to another generation.
    #[must_use]
    pub fn theme_change(
        owner: &Owner,
        project: ProjectId,
        generation: ImportId,
        files: i64,
        bytes: i64,
    ) -> Write {
        Write::Add {
            key: keys::theme(owner, project),
            numbers: vec![("revision", 1), ("files", files), ("bytes", bytes)],
            only_if: Condition::Text {
                attribute: "generation",
                value: generation.to_string(),
                or_missing: generation == ImportId::NONE,
            },
            expires: None,
        }
    }

    /// A file, with the version of its record in this generation.
    pub async fn theme_file(
        &self,
        owner: &Owner,
        project: ProjectId,
        generation: ImportId,
        path: &str,
    ) -> Result<Option<Versioned<ThemeFile>>, StoreError> {
        self.get(&keys::theme_file(owner, project, generation, path)).await
    }

    /// The write of a file over the record that was read at version `record` (0: it did not exist).
    pub fn theme_file_write(
        owner: &Owner,
        project: ProjectId,
        generation: ImportId,
        file: &ThemeFile,
        record: u64,
    ) -> Result<Write, StoreError> {
        let key = keys::theme_file(owner, project, generation, &file.path);
        let item = item(file, &Extras::default())?;
        Ok(Write::over(key, record, item))
    }

    /// Writes files into a generation that nobody reads yet.
    pub async fn put_theme_files(
        &self,
        owner: &Owner,
        project: ProjectId,
        generation: ImportId,
        files: &[ThemeFile],
    ) -> Result<(), StoreError> {
        let place = |file: &ThemeFile| {
            let key = keys::theme_file(owner, project, generation, &file.path);
            Ok((key, item(file, &Extras::default())?))
        };
        self.put_many(files.iter().map(place).collect::<Result<_, StoreError>>()?).await
    }

    /// Some files, by path.
    pub async fn theme_files(
        &self,
        owner: &Owner,
        project: ProjectId,
        generation: ImportId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<ThemeFile>, StoreError> {
        self.query(&keys::theme_files(owner, project, generation), after, limit, Order::Oldest).await
    }

    /// All files of a generation, sorted by path. There are at most `theme::index::MAX_FILES`.
    pub async fn all_theme_files(
        &self,
        owner: &Owner,
        project: ProjectId,
        generation: ImportId,
    ) -> Result<Vec<ThemeFile>, StoreError> {
        let (mut files, mut after) = (Vec::new(), None::<String>);
        loop {
            let found = self.theme_files(owner, project, generation, after.as_deref(), FILES_PAGE).await?;
            files.extend(found.items.into_iter().map(|(_, file)| file.value));
            after = found.last;
            if after.is_none() {
                return Ok(files);
            }
        }
    }

    pub async fn delete_theme_files(
        &self,
        owner: &Owner,
        project: ProjectId,
        generation: ImportId,
    ) -> Result<(), StoreError> {
        self.delete_range(&keys::theme_files(owner, project, generation)).await
    }

    /// Writes the state of an import. Refused if another writer was faster, or if the project does not exist any more.
    pub async fn write_import(
        &self,
        owner: &Owner,
        project: ProjectId,
        import: &Import,
        version: u64,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let key = keys::theme_import(owner, project, import.import_id);
        let item = item(import, &Extras::expiring(now + IMPORT_KEPT))?;
        let mut writes = vec![Write::over(key, version, item)];
        writes.extend(Self::project_exists(owner, project));
        self.write_all(writes).await
    }

    pub async fn import(
        &self,
        owner: &Owner,
        project: ProjectId,
        id: ImportId,
    ) -> Result<Option<Versioned<Import>>, StoreError> {
        self.get(&keys::theme_import(owner, project, id)).await
    }

    /// Imports, newest first.
    pub async fn imports(
        &self,
        owner: &Owner,
        project: ProjectId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Import>, StoreError> {
        self.query(&keys::theme_imports(owner, project), after, limit, Order::Newest).await
    }
}
