//! The manuals: their links resolve, and what they list is what the code has.

mod architecture;
mod cli;
mod links;
mod lists;
mod page;
