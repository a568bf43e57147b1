//! The `catalog` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&catalog::FUNCTION)
}
