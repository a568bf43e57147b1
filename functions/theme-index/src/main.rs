//! The `theme-index` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&theme_index::FUNCTION)
}
