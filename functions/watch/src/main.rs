//! The `watch` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&watch::FUNCTION)
}
