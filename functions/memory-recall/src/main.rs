//! The `memory-recall` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&memory_recall::FUNCTION)
}
