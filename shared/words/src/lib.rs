//! What the indexes of themes and of memory share: letters, folding, stems, and the numbers of terms.
//!
//! Theme indexes are stored, and their words depend on these functions. A change of a result needs a new version of
//! the stored formats.

mod letters;
mod lexicon;
mod stems;

pub use letters::{fold, fold_each, forms, is_letter, is_unspaced, is_word_byte, split_foreign};
pub use lexicon::{Lexicon, TermId};
pub use stems::{Language, Stemmer};
