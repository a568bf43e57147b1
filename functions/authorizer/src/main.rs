//! The `authorizer` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&authorizer::FUNCTION)
}
