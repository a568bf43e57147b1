//! The `theme-lookup` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&theme_lookup::FUNCTION)
}
