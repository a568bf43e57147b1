//! Whether the results of an action reach its person, before any of them was told.

use domain::ids::{ActionId, Owner};
use domain::notices::channels::ShownChannel;
use domain::notices::{Delivery, NoticeKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Data;
use crate::error::Result;
use crate::store::notices::ChannelState;

/// Where the results of an action are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Reaches {
    /// The channels that are on, or those of them that were chosen for the action. Results are told on each of them, unless `delivery` is
    /// `off`.
    pub channels: Vec<ShownChannel>,
    /// How results are told.
    pub delivery: Delivery,
    /// In words.
    #[schema(example = "Told at: Slack https://hooks.slack.com/…k3Xz. Each result at once.")]
    pub text: String,
}

impl Reaches {
    /// Whether nobody is told.
    #[must_use]
    pub fn nobody(&self) -> bool {
        self.channels.is_empty() || self.delivery == Delivery::Off
    }

    fn new(channels: Vec<ShownChannel>, delivery: Delivery) -> Self {
        let named: Vec<String> =
            channels.iter().map(|channel| format!("{} {}", channel.kind.name(), channel.target)).collect();
        let named = named.join(", ");
        let text = match delivery {
            _ if channels.is_empty() => {
                "Nobody is told of results: there is no channel. They wait in the console.".to_owned()
            }
            Delivery::Off => "Nobody is told of results: notices of results are switched off.".to_owned(),
            Delivery::AtOnce => format!("Told at: {named}. Each result at once."),
            Delivery::Digest => {
                format!("Told at: {named}. The first result at once, later ones once a day.")
            }
        };
        Self { channels, delivery, text }
    }
}

/// Where the results of an action are told. Without one: those of a new action.
///
/// # Errors
/// If the table does not answer.
pub async fn of_results(data: &Data, owner: &Owner, action: Option<ActionId>) -> Result<Reaches> {
    let (channels, preferences) =
        tokio::try_join!(data.store.channels(owner), data.store.preferences(owner))?;
    let preferences = preferences.value;
    let is_on = channels.into_iter().map(|found| found.value).filter(|of| of.state == ChannelState::Enabled);
    let channels: Vec<_> = is_on.collect();
    let told = preferences.told(&channels, |channel| channel.channel_id, action).into_iter();
    let told = told.map(|channel| ShownChannel { kind: channel.kind, target: channel.target.clone() });
    Ok(Reaches::new(told.collect(), preferences.delivery(NoticeKind::Succeeded, action)))
}
