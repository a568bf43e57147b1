//! The `authorizer` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&authorizer::FUNCTION)
}
