//! The `mcp` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&mcp::FUNCTION)
}
