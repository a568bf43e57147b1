//! How people are told what happened.

use domain::notices::channels::check_email;
use domain::notices::render::Site;

use super::{ConfigError, Env, given};

/// Who sends e-mails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MailConfig {
    /// Nobody. A person can't have a channel of this kind.
    #[default]
    Off,
    /// The platform stores the request that Amazon SES would get. No variable sets it; `infra/local` does.
    Outbox { from: String },
    /// Amazon SES. The sender must be verified there. With a configuration set that publishes its events, the platform learns of e-mails
    /// that came back.
    Ses { from: String, configuration_set: Option<String> },
}

/// How people are told.
#[derive(Clone, Debug)]
pub struct NoticesConfig {
    pub mail: MailConfig,
    /// The address of the platform, for links.
    pub site: Site,
}

impl Default for NoticesConfig {
    fn default() -> Self {
        Self { mail: MailConfig::Off, site: Site::local() }
    }
}

impl NoticesConfig {
    /// # Errors
    /// If the address of the platform is not an address, or if the sender is not one e-mail address.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let site = Self::public_url(env)?.unwrap_or_else(Site::local);
        let variable = "LAMPLIGHTER_MAIL_FROM";
        let mail = match given(env, variable) {
            None => MailConfig::Off,
            Some(from) => {
                check_email(&from).map_err(|problem| ConfigError {
                    variable,
                    problem: format!("{problem}; is `{from}`"),
                })?;
                MailConfig::Ses { from, configuration_set: given(env, "LAMPLIGHTER_MAIL_CONFIGURATION_SET") }
            }
        };
        Ok(Self { mail, site })
    }

    /// The address under which people reach the platform, if the operator has set it.
    ///
    /// # Errors
    /// If it is not an address.
    pub fn public_url(env: Env<'_>) -> Result<Option<Site>, ConfigError> {
        let variable = "LAMPLIGHTER_PUBLIC_URL";
        let Some(text) = given(env, variable) else { return Ok(None) };
        match Site::new(&text) {
            Ok(site) => Ok(Some(site)),
            Err(error) => Err(ConfigError { variable, problem: format!("{error}, is `{text}`") }),
        }
    }
}
