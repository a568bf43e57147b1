//! The `action-define` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&action_define::FUNCTION)
}
