//! The `mcp` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&mcp::FUNCTION)
}
