//! `assets`: a list of assets, or the content of one.

use super::api::Api;
use super::names::{self, Kind};
use super::screen::{Look, block, print_json};
use super::table::{Table, short_ids};
use super::values::Fields;
use crate::Failure;
use crate::args::Assets;
use crate::output;

/// Prints a list of assets, or the content of one.
///
/// # Errors
/// If the server does not answer, or there is no such asset.
pub fn run(api: &Api, args: &Assets) -> Result<(), Failure> {
    if let Some(called) = &args.asset {
        let path = names::path(api, Kind::Asset, called)?;
        if args.json.json {
            return print_json(&api.get(&path, &[])?);
        }
        let content = api.get_bytes(&format!("{path}/content"), &[])?.body;
        if !api.screen.is_terminal() {
            // A file gets exactly the content.
            return Ok(output::print(content)?);
        }
        let mut shown = block(&String::from_utf8_lossy(&content));
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        return Ok(output::print(shown)?);
    }
    let agent = args.agent.as_deref().map(|called| names::id(api, Kind::Agent, called)).transpose()?;
    let list = api.list("/assets", &[("agent_id", agent.as_deref())], args.limit.limit)?;
    if args.json.json {
        return print_json(&list);
    }
    let assets = list.items("data");
    let ids: Vec<&str> = assets.iter().map(|asset| asset.text("asset_id")).collect();
    let mut table = Table::new(api.screen, &["ID", "TITLE", "TYPE", "SIZE", "CHANGED", "ABOUT"]);
    for (asset, id) in assets.iter().zip(short_ids(api.screen, &ids)) {
        table.row([
            (id.as_str(), Look::Dim),
            (asset.text("title"), Look::Plain),
            (asset.text("asset_type"), Look::Plain),
            (size(asset.number("bytes").unwrap_or(0)).as_str(), Look::Plain),
            (api.when(asset.text("updated_at")).as_str(), Look::Plain),
            (asset.text("description"), Look::Dim),
        ]);
    }
    output::print(if table.is_empty() { "there are no assets\n".to_owned() } else { table.lines() })?;
    api.note_more(&list);
    Ok(())
}

fn size(bytes: i64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
