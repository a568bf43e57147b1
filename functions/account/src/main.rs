//! The `account` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&account::FUNCTION)
}
