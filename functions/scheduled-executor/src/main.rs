//! The `scheduled-executor` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&scheduled_executor::FUNCTION)
}
