//! The `watchdog` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&watchdog::FUNCTION)
}
