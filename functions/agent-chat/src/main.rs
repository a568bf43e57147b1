//! The `agent-chat` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&agent_chat::FUNCTION)
}
