//! The `schedule-sweep` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&schedule_sweep::FUNCTION)
}
