//! The `account` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&account::FUNCTION)
}
