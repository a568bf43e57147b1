//! The theme index. It is built from files, updated file by file, and answers requests.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::graph::{self, Edge, Graph, RawEdge};
use super::path::{FileKind, PathError, check_path, handle};
use super::postings::Postings;
use super::priors::Priors;
use super::record::{FileRecord, NameId, RecordReader, Tables, Texts};
use super::scan::DegradedReason;
use super::words::{self, TermId};

/// The largest number of files in a theme.
pub const MAX_FILES: usize = 10_000;
/// The largest total size of a theme's files, in bytes.
pub const MAX_THEME_BYTES: usize = 128 * 1024 * 1024;

/// Why a theme cannot be indexed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("the theme has more than {MAX_FILES} files")]
    TooManyFiles,
    #[error("the theme has more than {} MB of files", MAX_THEME_BYTES / 1024 / 1024)]
    TooLarge,
    #[error("the path {path:?} is not allowed in a theme")]
    Path {
        path: String,
        #[source]
        source: PathError,
    },
}

/// A place in a file that the index could not fully understand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DegradedFile {
    pub path: String,
    pub line: u32,
    pub reason: DegradedReason,
}

/// The index of a theme, in memory.
///
/// It is a pure function of the theme's files: any sequence of changes that ends with the same files gives the same
/// answers and the same blob.
pub struct ThemeIndex {
    pub(super) tables: Tables,
    /// Sorted by path.
    pub(super) files: Vec<FileRecord>,
    pub(super) postings: Postings,
    pub(super) graph: Graph,
    /// Files by the hash of their path.
    by_hash: FxHashMap<u64, u32>,
    pub(super) texts: TextKeys,
    /// The words of each target's own name, each with how well it distinguishes this name from the others.
    pub(super) own_names: Vec<Vec<(TermId, f32)>>,
    /// The words of the names of alternate templates: `prices` for `templates/page.prices.json`. Sorted by file.
    pub(super) suffixes: Vec<(u32, Vec<TermId>)>,
    pub(super) priors: Vec<Priors>,
}

/// Where the default locales have the text of each key.
#[derive(Default)]
pub(super) struct TextKeys(FxHashMap<NameId, (u32, u32)>);

impl TextKeys {
    fn of(files: &[FileRecord]) -> Self {
        let mut keys = FxHashMap::default();
        for (file, record) in (0_u32..).zip(files) {
            if let Some(Texts::Default(texts)) = &record.texts {
                keys.extend((0_u32..).zip(texts).map(|(at, text)| (text.key, (file, at))));
            }
        }
        Self(keys)
    }

    pub(super) fn terms<'a>(&self, files: &'a [FileRecord], key: NameId) -> Option<&'a [TermId]> {
        let &(file, at) = self.0.get(&key)?;
        match &files[file as usize].texts {
            Some(Texts::Default(texts)) => texts.get(at as usize).map(|text| text.terms.as_slice()),
            _ => None,
        }
    }
}

fn own_names(files: &[FileRecord]) -> Vec<Vec<(TermId, f32)>> {
    let mut counts: FxHashMap<TermId, f32> = FxHashMap::default();
    for &term in files.iter().flat_map(|file| &file.own_name) {
        *counts.entry(term).or_insert(0.0) += 1.0;
    }
    let all = files.len() as f32;
    let weight = |&term: &TermId| (term, (1.0 + all / (counts[&term] + 1.0)).ln());
    files.iter().map(|file| file.own_name.iter().map(weight).collect()).collect()
}

/// A hash of a path. It is not stored.
pub(super) fn hash_of_path(path: &str) -> u64 {
    FxBuildHasher.hash_one(path)
}

fn suffixes(files: &[FileRecord], tables: &Tables) -> Vec<(u32, Vec<TermId>)> {
    let mut all = Vec::new();
    for (file, record) in (0_u32..).zip(files) {
        if !matches!(record.kind, FileKind::Template | FileKind::JsonTemplate) {
            continue;
        }
        let Some((_, name)) = handle(&record.path).split_once('.') else { continue };
        let words: Vec<TermId> =
            words::words(name).iter().filter_map(|word| tables.terms.get(word)).collect();
        if !words.is_empty() {
            all.push((file, words));
        }
    }
    all
}

impl ThemeIndex {
    /// Indexes a whole theme. If a path occurs twice, the last content wins.
    pub fn build<P, B>(files: impl IntoIterator<Item = (P, B)>) -> Result<Self, ThemeError>
    where
        P: AsRef<str>,
        B: AsRef<[u8]>,
    {
        let mut tables = Tables::default();
        let mut reader = RecordReader::new(&mut tables);
        let mut by_path: FxHashMap<String, FileRecord> = FxHashMap::default();
        let mut bytes = 0;
        for (path, content) in files {
            let (path, content) = (path.as_ref(), content.as_ref());
            check(path)?;
            bytes += content.len();
            if bytes > MAX_THEME_BYTES {
                return Err(ThemeError::TooLarge);
            }
            by_path.insert(path.to_owned(), reader.read(path, content));
            if by_path.len() > MAX_FILES {
                return Err(ThemeError::TooManyFiles);
            }
        }
        let mut files: Vec<FileRecord> = by_path.into_values().collect();
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(Self::assemble(tables, files))
    }

    pub(super) fn assemble(tables: Tables, files: Vec<FileRecord>) -> Self {
        let postings = Postings::build(&files, &tables);
        let graph = Graph::build(&files, &tables);
        let by_hash =
            (0_u32..).zip(&files).map(|(file, record)| (hash_of_path(&record.path), file)).collect();
        let texts = TextKeys::of(&files);
        let own_names = own_names(&files);
        let suffixes = suffixes(&files, &tables);
        let priors = (0_u32..).zip(&files).map(|(file, record)| Priors::of(file, record, &graph)).collect();
        Self { tables, files, postings, graph, by_hash, texts, own_names, suffixes, priors }
    }

    /// Computes the derived parts again. This takes less time than reading one large file.
    fn reassemble(&mut self) {
        let tables = std::mem::take(&mut self.tables);
        let files = std::mem::take(&mut self.files);
        *self = Self::assemble(tables, files);
    }

    /// How rare a term is in paths. 0 if no path has it.
    pub(super) fn path_idf(&self, term: TermId) -> f32 {
        let paths = self.postings.path_counts[term as usize] as f32;
        if paths == 0.0 { 0.0 } else { (1.0 + self.postings.targets as f32 / (paths + 0.5)).ln() }
    }

    /// How rare a term is among the files that can be targets. A word that occurs in only one file tells little more
    /// than a word that occurs in two or three.
    pub(super) fn idf(&self, term: TermId) -> f32 {
        let files = self.postings.files(term).len() as f32;
        let all = self.postings.targets as f32;
        (1.0 + (all - files + 0.5).max(0.0) / (files + 2.0)).ln()
    }

    /// Adds a file or replaces its content.
    pub fn replace(&mut self, path: &str, content: &[u8]) -> Result<(), ThemeError> {
        check(path)?;
        let place = self.place(path);
        if place.is_err() && self.files.len() >= MAX_FILES {
            return Err(ThemeError::TooManyFiles);
        }
        let record = RecordReader::new(&mut self.tables).read(path, content);
        match place {
            Ok(at) => self.files[at] = record,
            Err(at) => self.files.insert(at, record),
        }
        self.reassemble();
        Ok(())
    }

    /// Removes a file. Returns whether it existed.
    pub fn remove(&mut self, path: &str) -> bool {
        let Ok(at) = self.place(path) else { return false };
        self.files.remove(at);
        self.reassemble();
        true
    }

    /// Moves a file and replaces any file at `to`. The content is needed again, because the path decides how it is
    /// read.
    pub fn rename(&mut self, from: &str, to: &str, content: &[u8]) -> Result<(), ThemeError> {
        check(to)?;
        if let Ok(at) = self.place(from) {
            self.files.remove(at);
        }
        self.replace(to, content)
    }

    fn place(&self, path: &str) -> Result<usize, usize> {
        self.files.binary_search_by(|file| (*file.path).cmp(path))
    }

    pub(super) fn file(&self, path: &str) -> Option<u32> {
        self.place(path).ok().map(|at| at as u32)
    }

    /// [`file`](Self::file) for a path whose hash is known.
    pub(super) fn file_of_hash(&self, path: &str, hash: u64) -> Option<u32> {
        let &file = self.by_hash.get(&hash)?;
        // Of two paths with the same hash the table has one.
        if self.path(file) == path { Some(file) } else { self.file(path) }
    }

    pub(super) fn path(&self, file: u32) -> &str {
        &self.files[file as usize].path
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.path)
    }

    /// The number of lines of the file.
    pub fn lines(&self, path: &str) -> Option<u32> {
        self.file(path).map(|file| self.files[file as usize].lines)
    }

    /// The first half of the SHA-256 of the file's content.
    pub fn content_hash(&self, path: &str) -> Option<[u8; 16]> {
        self.file(path).map(|file| self.files[file as usize].hash)
    }

    /// All places that could not be parsed.
    pub fn degraded(&self) -> Vec<DegradedFile> {
        let of_file = |file: &FileRecord| {
            let path = file.path.to_string();
            let place = move |&(line, reason): &_| DegradedFile { path: path.clone(), line, reason };
            file.degraded.iter().map(place).collect::<Vec<_>>()
        };
        self.files.iter().flat_map(of_file).collect()
    }

    /// The edges from `path` to the files that it needs.
    pub fn depends_on(&self, path: &str) -> Vec<Edge> {
        let Some(file) = self.file(path) else { return Vec::new() };
        self.graph.outgoing(file).iter().map(|edge| self.edge(edge)).collect()
    }

    /// The edges to `path`, from files that render it, load it, or use what it defines.
    pub fn needed_by(&self, path: &str) -> Vec<Edge> {
        let Some(file) = self.file(path) else { return Vec::new() };
        self.graph.incoming(file).map(|edge| self.edge(edge)).collect()
    }

    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        self.graph.edges.iter().map(|edge| self.edge(edge))
    }

    /// References to files and names that the theme does not have.
    pub fn unresolved(&self) -> Vec<Edge> {
        self.edges().filter(|edge| edge.to.is_none()).collect()
    }

    /// Files that are probably unused. A file that a name computed at run time may load is not listed.
    pub fn orphans(&self) -> Vec<&str> {
        graph::orphans(&self.files, &self.tables, &self.graph)
            .into_iter()
            .map(|file| self.path(file))
            .collect()
    }

    fn edge(&self, edge: &RawEdge) -> Edge {
        Edge {
            from: self.path(edge.from).to_owned(),
            to: edge.to.map(|to| self.path(to).to_owned()),
            kind: edge.kind,
            nature: edge.nature,
            via: self.tables.names.term(edge.name).to_owned(),
            lines: edge.lines,
        }
    }
}

fn check(path: &str) -> Result<(), ThemeError> {
    check_path(path).map_err(|source| ThemeError::Path { path: path.to_owned(), source })
}
