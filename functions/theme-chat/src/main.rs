//! The `theme-chat` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&theme_chat::FUNCTION)
}
