//! The `theme-index` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&theme_index::FUNCTION)
}
