//! The `action-define` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&action_define::FUNCTION)
}
