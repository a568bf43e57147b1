//! A project: a theme's files, their map, and what is known about the work on it.

pub mod enrichment;
mod hook_filter;
pub mod theme;
pub mod turn;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::ProjectId;
use crate::text::names;
use crate::validate::FieldErrors;

pub use hook_filter::{HookFilter, HookFilterText};

/// Longest name, in characters.
pub const MAX_NAME: usize = 200;

/// A project as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    pub project_id: ProjectId,
    pub name: String,
    #[schema(value_type = HookFilterText)]
    pub hook_filter: HookFilter,
    /// Whether a model may describe the theme's files. Their text is then sent to the model's provider, and this costs
    /// money.
    #[serde(default)]
    pub enrichment: bool,
    /// Whether assistants and agents may apply change sets of the theme by themselves. Absent: a person applies them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub assistants_apply: bool,
    /// Whether each edit that an assistant makes is applied at once, if assistants may apply and Shopify would accept it. Absent: edits
    /// collect in a change set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub apply_at_once: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The fields of a new project.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({ "name": "Spring theme" }))]
pub struct NewProject {
    /// 1 to 200 characters.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 200)]
    pub name: String,
    /// Default: `"all"`.
    #[serde(default)]
    #[schema(value_type = HookFilterText)]
    pub hook_filter: HookFilter,
    /// Whether a model may describe the theme's files. Their text is then sent to the model's provider, and this costs
    /// money. Default: `false`.
    #[serde(default)]
    pub enrichment: bool,
    /// Whether assistants and agents may apply change sets of the theme by themselves. Otherwise a person applies them. Default: `false`.
    #[serde(default)]
    pub assistants_apply: bool,
    /// Whether each edit that an assistant makes is applied at once, if assistants may apply and Shopify would accept it. Otherwise edits
    /// collect in a change set. Default: `false`.
    #[serde(default)]
    pub apply_at_once: bool,
}

/// A change of a project. Omitted fields keep their values.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct ProjectPatch {
    /// 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    #[schema(value_type = Option<HookFilterText>)]
    pub hook_filter: Option<HookFilter>,
    /// `true` lets a model describe the theme's files, and restarts an enrichment that stopped. `false` deletes what
    /// the model wrote.
    pub enrichment: Option<bool>,
    /// Whether assistants and agents may apply change sets of the theme by themselves. Otherwise a person applies them.
    pub assistants_apply: Option<bool>,
    /// Whether each edit that an assistant makes is applied at once, if assistants may apply and Shopify would accept it. Otherwise edits
    /// collect in a change set.
    pub apply_at_once: Option<bool>,
}

impl NewProject {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn into_project(self, project_id: ProjectId, now: Timestamp) -> Result<Project, FieldErrors> {
        Project {
            project_id,
            name: names::canonical(&self.name),
            hook_filter: self.hook_filter,
            enrichment: self.enrichment,
            assistants_apply: self.assistants_apply,
            apply_at_once: self.apply_at_once,
            created_at: now,
            updated_at: now,
        }
        .validated()
    }
}

impl Project {
    /// The project that every owner has without creating it.
    #[must_use]
    pub fn default_of_all() -> Self {
        Self {
            project_id: ProjectId::DEFAULT,
            name: "Default".to_owned(),
            hook_filter: HookFilter::default(),
            enrichment: false,
            assistants_apply: false,
            apply_at_once: false,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// The project with `patch` applied.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn patched(self, patch: ProjectPatch, now: Timestamp) -> Result<Self, FieldErrors> {
        Self {
            name: patch.name.map_or(self.name, |name| names::canonical(&name)),
            hook_filter: patch.hook_filter.unwrap_or(self.hook_filter),
            enrichment: patch.enrichment.unwrap_or(self.enrichment),
            assistants_apply: patch.assistants_apply.unwrap_or(self.assistants_apply),
            apply_at_once: patch.apply_at_once.unwrap_or(self.apply_at_once),
            updated_at: now,
            ..self
        }
        .validated()
    }

    fn validated(self) -> Result<Self, FieldErrors> {
        self.check()?;
        Ok(self)
    }

    /// Checks the limits of every project, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        names::check(&mut errors, &self.name, MAX_NAME);
        self.hook_filter.check("hook_filter", &mut errors);
        errors.into_result(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(body: serde_json::Value) -> Result<Project, FieldErrors> {
        let new: NewProject = serde_json::from_value(body).unwrap();
        new.into_project(ProjectId::DEFAULT, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_project_is_made_and_changed() {
        let made = new(serde_json::json!({"name": " Spring "})).unwrap();
        assert_eq!(made, Project { name: "Spring".into(), ..Project::default_of_all() });
        let now = Timestamp::from_second(5).unwrap();
        let patch = ProjectPatch { hook_filter: Some(HookFilter::All), ..ProjectPatch::default() };
        let changed = made.clone().patched(patch, now).unwrap();
        assert_eq!(changed, Project { hook_filter: HookFilter::All, updated_at: now, ..made.clone() });
        let patch = ProjectPatch { enrichment: Some(true), ..ProjectPatch::default() };
        assert_eq!(
            made.clone().patched(patch, now).unwrap(),
            Project { enrichment: true, updated_at: now, ..made }
        );
    }

    #[test]
    fn a_stored_filter_is_kept() {
        let mut stored = serde_json::to_value(Project::default_of_all()).unwrap();
        assert_eq!(stored["hook_filter"], "all");
        stored["hook_filter"] = serde_json::json!(["the-"]);
        let project: Project = serde_json::from_value(stored).unwrap();
        let renamed = ProjectPatch { name: Some("Other".into()), ..ProjectPatch::default() };
        let renamed = project.patched(renamed, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(renamed.hook_filter, HookFilter::Prefixes(vec!["the-".into()]));
    }

    #[test]
    fn projects_stored_before_enrichment_still_load() {
        let mut stored = serde_json::to_value(Project::default_of_all()).unwrap();
        stored.as_object_mut().unwrap().remove("enrichment");
        assert_eq!(serde_json::from_value::<Project>(stored).unwrap(), Project::default_of_all());
    }

    #[test]
    fn every_broken_limit_is_named_at_once() {
        let refused = new(serde_json::json!({"name": " ", "hook_filter": [""]})).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "name: is required (1 to 200 characters); \
             hook_filter[0]: must be 1 to 39 of the characters A-Z a-z 0-9 _ -"
        );
    }
}
