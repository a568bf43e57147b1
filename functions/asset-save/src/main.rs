//! The `asset-save` Lambda.

fn main() -> std::process::ExitCode {
    shared::runtime::lambda::run(&asset_save::FUNCTION)
}
