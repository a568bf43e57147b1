//! What a person reads in the archive of an account: its agents, its assets under their titles, and what the archive is.

use std::collections::BTreeMap;

use domain::actions::Action;
use domain::agents::Agent;
use domain::assets::{Asset, AssetType};
use domain::ids::AgentId;
use domain::text::quoting::one_line;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::store::Attributes;
use crate::store::partitions::Partition;

/// How many assets get a name. The others are in the archive by their keys alone, so that a large account needs little memory.
const MAX_NAMED: usize = 20_000;

/// The longest beginning of a title in a name, in characters.
const MAX_STEM: usize = 80;

/// What the records of an account say about what a person has made. Each record is read once, and only its names are kept.
#[derive(Default)]
pub(super) struct Readable {
    agents: BTreeMap<AgentId, (String, Vec<String>)>,
    /// The name of each asset's newest content, by its key.
    assets: BTreeMap<String, String>,
    unnamed: usize,
}

impl Readable {
    pub fn note(&mut self, partition: &Partition, item: &Attributes) {
        match partition {
            Partition::Agents => {
                let Some(agent) = read::<Agent>(item) else { return };
                let heading = format!("## {}\n\n{}\n", one_line(&agent.name), one_line(&agent.goal));
                self.agents.entry(agent.agent_id).or_default().0 = heading;
            }
            Partition::Actions => {
                let Some(action) = read::<Action>(item) else { return };
                let when = action.schedule_text().unwrap_or_else(|| "When you run it.".to_owned());
                let line = format!("- **{}** ({}). {when}\n", one_line(&action.title), action.state.as_str());
                self.agents.entry(action.agent_id).or_default().1.push(line);
            }
            Partition::Assets => {
                let Some(asset) = read::<Asset>(item) else { return };
                if self.assets.len() >= MAX_NAMED {
                    self.unnamed += 1;
                    return;
                }
                let key = format!("assets/{}/{}", asset.asset_id, asset.sha256);
                self.assets.insert(key, name(&asset));
            }
            _ => {}
        }
    }

    /// The name of an object that is the newest content of an asset.
    pub fn name_of(&self, key: &str) -> Option<&str> {
        self.assets.get(key).map(String::as_str)
    }

    pub fn agents(&self) -> String {
        let mut text = "# Agents and their actions\n".to_owned();
        for (heading, actions) in self.agents.values().filter(|(heading, _)| !heading.is_empty()) {
            text.push_str(&format!("\n{heading}"));
            if !actions.is_empty() {
                text.push_str(&format!("\n{}", actions.concat()));
            }
        }
        text
    }

    pub fn readme(&self, at: Timestamp) -> String {
        let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let agents = self.agents.values().filter(|(heading, _)| !heading.is_empty()).count();
        let actions = self.agents.values().map(|(_, actions)| actions.len()).sum();
        let unnamed = match self.unnamed {
            0 => String::new(),
            left => format!(" {left} more are in `objects/` only."),
        };
        format!(
            "# An account of Lamplighter\n\nExported on {}: {}, {} and {}.\n\n\
             - `readable/agents.md`: the agents with their goals, and their actions with their times.\n\
             - `readable/assets/`: the newest text of each asset, under its title.{unnamed}\n\
             - `records.jsonl`: everything that is stored about them, a record on each line: chats, runs, history, memory, settings.\n\
             - `objects/`: texts and files that are too large for a record, and earlier versions of assets.\n\
             - `manifest.json`: how many records of each kind there are.\n\n\
             `POST /account/import` makes this archive the contents of an empty account, here or in another deployment. Passwords, keys and the \
             addresses of channels are not in it.\n",
            at.strftime("%Y-%m-%d %H:%M UTC"),
            counted(agents, "agent"),
            counted(actions, "action"),
            counted(self.assets.len() + self.unnamed, "asset"),
        )
    }
}

fn read<T: DeserializeOwned>(item: &Attributes) -> Option<T> {
    serde_dynamo::from_item(item.clone()).ok()
}

/// A name that every file system takes, and that no other asset has.
fn name(asset: &Asset) -> String {
    let mut stem = String::new();
    for c in asset.title.chars().take(MAX_STEM) {
        match c {
            c if c.is_alphanumeric() => stem.push(c),
            _ if stem.ends_with('-') || stem.is_empty() => {}
            _ => stem.push('-'),
        }
    }
    let id = asset.asset_id.to_string();
    let end = id.get(id.len().saturating_sub(8)..).unwrap_or(&id);
    let kind = match asset.asset_type {
        AssetType::Document => "md",
        AssetType::Code | AssetType::Prompt | AssetType::Email => "txt",
    };
    format!("{}{end}.{kind}", if stem.is_empty() || stem.ends_with('-') { stem } else { format!("{stem}-") })
}

#[cfg(test)]
mod tests {
    use domain::ids::AssetId;

    use super::*;

    fn asset(title: &str, id: u128) -> Asset {
        Asset {
            asset_id: AssetId::from_uuid(uuid::Uuid::from_u128(id)),
            agent_id: AgentId::from_uuid(uuid::Uuid::from_u128(1)),
            title: title.to_owned(),
            description: String::new(),
            asset_type: AssetType::Document,
            content_version: 1,
            bytes: 1,
            sha256: "a".to_owned(),
            run_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn names_are_safe_and_distinct() {
        for (title, expected) in [
            ("Lamp oil: prices", "Lamp-oil-prices-00000007.md"),
            ("../../etc/passwd", "etc-passwd-00000007.md"),
            ("Übersicht 5", "Übersicht-5-00000007.md"),
            ("🦀", "00000007.md"),
            ("CON", "CON-00000007.md"),
            ("", "00000007.md"),
            ("a\u{202e}b\nc", "a-b-c-00000007.md"),
        ] {
            assert_eq!(name(&asset(title, 7)), expected, "{title:?}");
        }
        assert_ne!(name(&asset("Same", 7)), name(&asset("Same", 8)));
        assert!(name(&asset(&"x".repeat(200), 7)).chars().count() < 100);
    }
}
