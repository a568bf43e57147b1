//! What the platform asks about themes.

use domain::projects::theme::{ThemeFile, ThemeState};
use domain::validate::FieldErrors;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::area::DataRules;
use shared::context::Area;
use theme::enrich::Notes;
use theme::index::{MAX_FILES, MAX_THEME_BYTES};
use theme::path::check_path;

/// The area of themes, for the declarations of functions.
pub static AREA: Area = Area { data: &RULES, tools: &[], leads: None };

/// The same with the tools, for functions that run agents.
pub static WITH_TOOLS: Area = Area { tools: crate::tools::OF_LOOP, leads: Some(&crate::turn::LEADS), ..AREA };

static RULES: DataRules = DataRules { check_record, check_object };

fn check_record(kind: &str, record: &Value) -> Result<(), String> {
    let checked = match kind {
        "theme" => read::<ThemeState>(record)?.check(MAX_FILES as u64, MAX_THEME_BYTES as u64),
        "theme_file" => {
            let file: ThemeFile = read(record)?;
            file.check(check_path(&file.path))
        }
        _ => Ok(()),
    };
    checked.map_err(|errors: FieldErrors| format!("is invalid: {errors}"))
}

fn check_object(key: &[&str], content: &[u8]) -> Result<(), String> {
    match key {
        ["projects", _, "notes", _] => {
            Notes::from_json(content).map(drop).map_err(|error| format!("has no valid notes: {error}"))
        }
        _ => Ok(()),
    }
}

fn read<T: DeserializeOwned>(record: &Value) -> Result<T, String> {
    T::deserialize(record).map_err(|error| format!("can't be read: {error}"))
}
