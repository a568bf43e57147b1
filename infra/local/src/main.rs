//! `cargo run`: the whole platform at <http://127.0.0.1:9000>, its data in `.lamplighter/`.

fn main() -> std::process::ExitCode {
    lamplighter_local::program::main()
}
