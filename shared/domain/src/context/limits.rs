//! The limits of a whole document.

use super::document::{Document, agent_name, line};
use super::{MAX_DOCUMENT, MAX_ITEM, MAX_TITLE, markdown};
use crate::validate::FieldErrors;

impl Document {
    /// The document, if it keeps the limits of a whole document.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn validated(self) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        optional(&mut errors, "title", self.title.as_deref(), MAX_TITLE);
        optional(&mut errors, "task", self.task.as_deref(), MAX_ITEM);
        for section in &self.sections {
            let path = |field: &str| format!("{}.{field}", section.mode);
            optional(&mut errors, &path("task"), section.task.as_deref(), MAX_ITEM);
            line(&mut errors, &path("status"), section.status.as_deref());
            line(&mut errors, &path("primaryAgent"), section.primary_agent.as_deref());
            let agent = section.recommended_act_agent.as_ref().map(|agent| agent.name.as_str());
            agent_name(&mut errors, &path("recommendedActAgent"), agent);
            for (name, list) in section.lists() {
                for (i, item) in list.iter().enumerate() {
                    errors.length(&format!("{}[{i}]", path(name)), item, 1, MAX_ITEM);
                }
            }
        }
        let bytes = markdown::export(&self).len();
        if bytes > MAX_DOCUMENT {
            errors.add(
                "document",
                format!("a context document has at most {MAX_DOCUMENT} bytes of Markdown (256 KiB); this would have {bytes}"),
            );
        }
        errors.into_result(self)
    }
}

fn optional(errors: &mut FieldErrors, field: &str, text: Option<&str>, max: usize) {
    if let Some(text) = text {
        errors.length(field, text, 1, max);
    }
}
