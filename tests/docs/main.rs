//! The manuals: their links resolve, and their lists match the code.

mod architecture;
mod cli;
mod image;
mod links;
mod lists;
mod page;
mod programs;
