//! The `agents` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&agents::FUNCTION)
}
