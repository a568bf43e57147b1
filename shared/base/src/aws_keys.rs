//! AWS credentials.

/// The credentials that Lambda gives a function. They stay the same for the life of its execution environment.
#[derive(Clone)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
}

impl std::fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AwsKeys").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}
