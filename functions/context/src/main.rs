//! The `context` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&context::FUNCTION)
}
