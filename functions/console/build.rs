//! Joins the modules and the style sheets of the console, and compresses them. The names of the results contain a hash of
//! their contents, so that browsers may keep them for ever.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flate2::Compression;
use flate2::write::GzEncoder;

#[path = "build/join.rs"]
mod join;
#[path = "build/squeeze.rs"]
mod squeeze;

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error=the console: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    println!("cargo::rerun-if-changed=web");
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let script = squeeze::script(&join::join(&texts(Path::new("web/js"), "js")?, "main.js")?);
    let style = squeeze::style(&texts(Path::new("web/css"), "css")?.into_values().collect::<String>());
    let mut names = String::new();
    for (kind, text) in [("js", &script), ("css", &style)] {
        let mut hash = DefaultHasher::new();
        hash.write(text.as_bytes());
        write(&out.join(format!("console.{kind}")), text.as_bytes())?;
        write(&out.join(format!("console.{kind}.gz")), &gzip(text.as_bytes())?)?;
        write(&out.join(format!("console.{kind}.br")), &brotli(text.as_bytes())?)?;
        names.push_str(&format!(
            "pub const {}: &str = \"console-{:016x}.{kind}\";\n",
            kind.to_uppercase(),
            hash.finish()
        ));
    }
    write(&out.join("names.rs"), names.as_bytes())
}

/// The files of a folder with this extension, by name.
fn texts(folder: &Path, extension: &str) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.extension().is_some_and(|found| found == extension) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
            all.insert(name, text);
        }
    }
    Ok(all)
}

fn brotli(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (mut compressed, best) = (Vec::new(), brotli::enc::BrotliEncoderParams::default());
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &best).map_err(|error| error.to_string())?;
    Ok(compressed)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
