//! Everything that limits an owner, in one answer.

use domain::accounts::import::MAX_ARCHIVE;
use domain::accounts::plans::{Plan, PlanTerms};
use domain::accounts::quota::Month;
use domain::accounts::rates::RouteClass;
use domain::actions::{MAX_EXPECTED_OUTPUT, MAX_INSTRUCTIONS};
use domain::assets::MAX_CONTENT_BYTES;
use domain::chats::conversation::{MAX_APPEND, MAX_MESSAGE};
use domain::context::MAX_DOCUMENT;
use domain::ids::Owner;
use domain::models::Features;
use domain::models::image::{MAX_IMAGE_BYTES, MAX_IMAGES, MAX_PIXELS};
use domain::projects::theme::{MAX_ARCHIVE_BYTES, MAX_FILE_BYTES};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::config::BudgetConfig;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::page::MAX_LIMIT;
use crate::money::ceilings;
use crate::money::plans;
use crate::money::quota::Quota;
use crate::request::limits::MAX_BODY_BYTES;
use crate::request::limits::MAX_KEY;
use crate::store::accounts::quota::MonthRequests;

/// The limits of an owner.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LimitsView {
    /// The plan that applies.
    pub plan: Plan,
    /// The plans that the owner may choose with `PATCH /account`.
    pub plans: Vec<Plan>,
    /// What the plan includes.
    pub includes: PlanTerms,
    /// The requests of this month (UTC).
    pub requests: QuotaView,
    /// How many requests the owner may make in a minute. Empty if there are no such limits.
    pub rates: Vec<RateView>,
    /// The most that may be spent.
    pub ceilings: Ceilings,
    /// The largest inputs.
    pub sizes: Sizes,
    /// Features of the model layer. The operator of the deployment decides about them.
    pub features: Features,
}

/// The requests of a month. A request is a turn, or a run of an action, whether a person or its schedule starts it.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct QuotaView {
    /// Whether the plan limits them. If not, they are not counted.
    pub limited: bool,
    /// How many were made.
    pub used: u32,
    /// How many of them the plan did not include.
    pub overage: u32,
    /// How many more the plan includes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// When the next month begins.
    pub resets_at: Timestamp,
}

/// The limit of a class of routes.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct RateView {
    /// The class.
    pub class: RouteClass,
    /// How many requests of the class fit into a minute of the clock.
    pub per_minute: u32,
}

/// The most that may be spent, in micro-dollars.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Ceilings {
    /// By a run, unless its action or agent has another ceiling.
    pub run_micros: i64,
    /// In a day (UTC).
    pub day_micros: i64,
    /// The most to which the ceiling of a day may be raised by answering a card.
    pub day_max_micros: i64,
    /// In a month (UTC), if the account or the deployment has such a ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month_micros: Option<i64>,
    /// The most to which a ceiling of a month may be set, or raised by answering a card.
    pub month_max_micros: i64,
    /// By one pass of a model over a theme.
    pub enrichment_micros: i64,
}

/// The largest inputs.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Sizes {
    /// The body of a request, in bytes.
    pub body_bytes: usize,
    /// The message of a turn, in characters.
    pub message_characters: usize,
    /// The images of a message.
    pub message_images: usize,
    /// The images of a message together, in bytes before the encoding.
    pub message_image_bytes: usize,
    /// The width and the height of an image, in pixels.
    pub image_pixels: u32,
    /// The messages in one append to a chat.
    pub append_messages: usize,
    /// The items on a page of a list.
    pub page_items: usize,
    /// An `Idempotency-Key`, in characters.
    pub idempotency_key_characters: usize,
    /// The content of an asset, in bytes.
    pub asset_bytes: usize,
    /// The instructions of an agent or action, in characters.
    pub instructions_characters: usize,
    /// The expected output of an action, in characters.
    pub expected_output_characters: usize,
    /// A context document, in bytes.
    pub context_document_bytes: usize,
    /// A file of a theme, in bytes. Files that are larger than a body come in an archive.
    pub theme_file_bytes: usize,
    /// An archive with a theme, in bytes.
    pub theme_archive_bytes: u64,
    /// An archive with an account, in bytes.
    pub account_archive_bytes: u64,
}

impl Sizes {
    const ALL: Self = Self {
        body_bytes: MAX_BODY_BYTES,
        message_characters: MAX_MESSAGE,
        message_images: MAX_IMAGES,
        message_image_bytes: MAX_IMAGE_BYTES,
        image_pixels: MAX_PIXELS,
        append_messages: MAX_APPEND,
        page_items: MAX_LIMIT,
        idempotency_key_characters: MAX_KEY,
        asset_bytes: MAX_CONTENT_BYTES,
        instructions_characters: MAX_INSTRUCTIONS,
        expected_output_characters: MAX_EXPECTED_OUTPUT,
        context_document_bytes: MAX_DOCUMENT,
        theme_file_bytes: MAX_FILE_BYTES,
        theme_archive_bytes: MAX_ARCHIVE_BYTES,
        account_archive_bytes: MAX_ARCHIVE,
    };
}

/// # Errors
/// If the table does not answer.
pub async fn read(cx: &Cx, owner: &Owner) -> Result<LimitsView> {
    let account = cx.store.account(owner).await?.value;
    let plan = plans::plan(cx, &account);
    let BudgetConfig { run_micros, day_max_micros, enrichment_micros, .. } = cx.config.budget;
    let month_max_micros = cx.config.budget.month_max();
    let (day_micros, month_micros) = ceilings::of_account(cx, &account);
    let quota = Quota::of(cx, owner).await?;
    let month = Month::at(cx.clock.now());
    let MonthRequests { used, overage } = cx.store.month_requests(owner, month).await?;
    let limit = quota.requests_per_month();
    Ok(LimitsView {
        requests: QuotaView {
            limited: limit.is_some(),
            used,
            overage,
            left: limit.map(|limit| limit.saturating_sub(used)),
            resets_at: month.end(),
        },
        plan,
        plans: cx.config.plans.allowed.clone(),
        includes: plan.terms(),
        rates: RouteClass::ALL
            .into_iter()
            .filter_map(|class| Some(RateView { class, per_minute: cx.config.rates.per_minute(class)? }))
            .collect(),
        ceilings: Ceilings {
            run_micros,
            day_micros,
            day_max_micros,
            month_micros,
            month_max_micros,
            enrichment_micros,
        },
        sizes: Sizes::ALL,
        features: cx.config.models.features,
    })
}
