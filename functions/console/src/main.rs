//! The `console` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&console::FUNCTION)
}
