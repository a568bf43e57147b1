//! The `schedule-sweep` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&schedule_sweep::FUNCTION)
}
