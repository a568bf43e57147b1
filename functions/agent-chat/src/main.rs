//! The `agent-chat` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&agent_chat::FUNCTION)
}
