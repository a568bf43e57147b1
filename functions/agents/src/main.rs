//! The `agents` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&agents::FUNCTION)
}
