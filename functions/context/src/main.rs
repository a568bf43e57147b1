//! The `context` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&context::FUNCTION)
}
