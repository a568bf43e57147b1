//! The `scheduled-executor` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&scheduled_executor::FUNCTION)
}
