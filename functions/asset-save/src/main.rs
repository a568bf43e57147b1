//! The `asset-save` Lambda.

fn main() -> std::process::ExitCode {
    shared::lambda::run(&asset_save::FUNCTION)
}
