//! The `docs-sync` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&docs_sync::FUNCTION)
}
