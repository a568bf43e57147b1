//! stub
use std::collections::BTreeMap; use super::*; use super::learn::{NotUsable, Rejected};
pub const RULES: &str = ""; pub const TOOL: &str = "remember"; pub const TOOL_DESCRIPTION: &str = "";
pub fn tool_schema() -> serde_json::Value { unimplemented!() }
pub fn question(_: &LongTerm, _: &BTreeMap<FactId, Fact>, _: &[Fact]) -> String { unimplemented!() }
pub struct Tidied { pub sections: Vec<Section>, pub week: Vec<Line>, pub rejected: Vec<Rejected> }
pub fn read(_: &serde_json::Value, _: &BTreeMap<FactId, Fact>) -> Result<Tidied, NotUsable> { unimplemented!() }
pub fn merge(_: &LongTerm, _: Vec<Section>, _: &BTreeMap<FactId, Fact>) -> LongTerm { unimplemented!() }
pub fn fit(_: LongTerm, _: &BTreeMap<FactId, Fact>) -> (LongTerm, Vec<Line>) { unimplemented!() }
pub fn check_by_hand(_: &LongTerm) -> Result<(), FieldErrors> { unimplemented!() }
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LineChange { pub text: String }
pub fn diff(_: &LongTerm, _: &LongTerm) -> Vec<LineChange> { unimplemented!() }
