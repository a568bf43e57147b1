//! `theme check`: what is wrong with a theme, or what a change of it adds.

use std::io::Write;
use std::process::ExitCode;

use theme::check::{CheckedTheme, Finding, Severity};
use theme_scripts::Oxc;

use super::{Result, files};

const USAGE: &str = "usage: theme check DIR [--overlay DIR2] [--deleted PATH]… [--json]";

pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let (mut folder, mut overlay, mut deleted, mut as_json) = (None, None, Vec::new(), false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--json" => as_json = true,
            "--overlay" => overlay = Some(rest.next().ok_or("--overlay has no folder")?),
            "--deleted" => deleted.push(rest.next().ok_or("--deleted has no path")?.clone()),
            option if option.starts_with("--") => {
                return Err(format!("unknown option {option}\n{USAGE}").into());
            }
            _ if folder.is_none() => folder = Some(argument),
            other => return Err(format!("unexpected argument {other}\n{USAGE}").into()),
        }
    }
    let base = CheckedTheme::read(files(folder.ok_or(USAGE)?)?, Some(&Oxc));
    let findings = if overlay.is_some() || !deleted.is_empty() {
        let changes = overlay.map_or(Ok(Vec::new()), |folder| files(folder))?;
        base.changed(changes, &deleted, Some(&Oxc)).added_since(&base)
    } else {
        base.findings()
    };
    print(&findings, as_json)?;
    let has_errors = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if has_errors { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(findings: &[Finding], as_json: bool) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if as_json {
        serde_json::to_writer(&mut out, &serde_json::json!({ "findings": findings }))?;
        writeln!(out)?;
    } else {
        for Finding { path, line, code, severity, message } in findings {
            let severity = format!("{severity:?}").to_lowercase();
            writeln!(out, "{path}:{line}: {severity}: {message} ({code})")?;
        }
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let [errors, warnings, infos] = [Severity::Error, Severity::Warning, Severity::Info].map(count);
        writeln!(out, "{errors} errors, {warnings} warnings, {infos} suggestions")?;
    }
    Ok(out.flush()?)
}
