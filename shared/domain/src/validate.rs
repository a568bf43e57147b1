//! Checking what came from outside: every refusal names the field and the limit, and all are reported at once.

use serde::Serialize;

/// One thing that is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct FieldError {
    /// Where it is, as a path: `task_config.instructions`, `schedule.cron`.
    pub field: String,
    /// What is wrong, with the limit: "must be 1 to 200 characters, is 314".
    pub message: String,
}

/// All that is wrong with one input, in the order of its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(.0))]
pub struct FieldErrors(pub Vec<FieldError>);

fn summary(errors: &[FieldError]) -> String {
    errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect::<Vec<_>>().join("; ")
}

impl FieldErrors {
    /// A single error.
    #[must_use]
    pub fn one(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self(vec![FieldError { field: field.into(), message: message.into() }])
    }

    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError { field: field.into(), message: message.into() });
    }

    /// Takes over the errors of a part, whose fields are below `prefix`.
    pub fn nest<T>(&mut self, prefix: &str, result: Result<T, Self>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Self(errors)) => {
                self.0.extend(errors.into_iter().map(|e| FieldError { field: join(prefix, &e.field), ..e }));
                None
            }
        }
    }

    /// Checks that `text` has `min` to `max` characters; surrounding blanks do not count towards `min`.
    pub fn length(&mut self, field: &str, text: &str, min: usize, max: usize) {
        let (characters, visible) = (text.chars().count(), text.trim().chars().count());
        if visible < min || characters > max {
            self.add(field, format!("must be {min} to {max} characters, is {characters}"));
        }
    }

    /// # Errors
    /// Itself, when anything was added.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

fn join(prefix: &str, field: &str) -> String {
    match (prefix.is_empty(), field.is_empty()) {
        (true, _) => field.to_owned(),
        (_, true) => prefix.to_owned(),
        _ => format!("{prefix}.{field}"),
    }
}
