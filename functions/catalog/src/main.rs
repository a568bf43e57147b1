//! The `catalog` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&catalog::FUNCTION)
}
