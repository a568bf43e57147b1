//! The `notices` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&notices::FUNCTION)
}
