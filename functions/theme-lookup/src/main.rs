//! The `theme-lookup` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&theme_lookup::FUNCTION)
}
