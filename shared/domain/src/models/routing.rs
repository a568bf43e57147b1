//! Chooses which models a call may use, and says why.
//!
//! [`resolve`] goes through ten levels and takes the first that decides. [`chain`] lists the models to call: the chosen one,
//! then those that replace it if it fails.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::catalog::{Catalog, ModelClass, ModelRef};
use super::request::ModelTier;
use super::vendor::Vendor;

/// The most models that one call tries.
const MAX_CHAIN: usize = 8;

/// Who in an agent's work needs the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentRole {
    /// The agent itself.
    #[default]
    Lead,
    /// A helper of the agent that changes files.
    Specialist,
    /// Checks the work of others.
    Review,
    /// Classifies a request.
    Classifier,
    /// Summarises a conversation.
    Summarizer,
    /// Finds the relevant files.
    Scout,
    /// Describes the files of a theme.
    Indexer,
}

impl AgentRole {
    pub const ALL: [Self; 7] = [
        Self::Lead,
        Self::Specialist,
        Self::Review,
        Self::Classifier,
        Self::Summarizer,
        Self::Scout,
        Self::Indexer,
    ];

    /// Whether the platform itself needs the reply. People do not choose the model of such a call.
    const fn is_infrastructure(self) -> bool {
        matches!(self, Self::Classifier | Self::Summarizer | Self::Scout | Self::Indexer)
    }
}

/// How large a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskTier {
    Trivial,
    Simple,
    Complex,
    Architectural,
}

impl TaskTier {
    pub const ALL: [Self; 4] = [Self::Trivial, Self::Simple, Self::Complex, Self::Architectural];
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Generate,
    Plan,
    Debug,
    Explain,
    Document,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    pub role: AgentRole,
    /// The tier of the agent, or of the work.
    pub tier: Option<ModelTier>,
    /// The size of the task. It decides before the agent's tier.
    pub task: Option<TaskTier>,
    pub work: Option<Work>,
    /// A model of another provider comes first, if there is one.
    pub other_than: Option<Vendor>,
}

/// Models that somebody has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The deployment uses this model for everything, and no other.
    pub forced: Option<ModelRef>,
    /// The owner wants the most capable models.
    pub max_quality: bool,
    /// This call is one of those that try out a model.
    pub canary: Option<ModelRef>,
    /// The owner's choice.
    pub preferred: Option<ModelRef>,
}

/// The level that decided. The first one that applies decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Forced,
    MaxQuality,
    Canary,
    Preference,
    Locked,
    Tier,
    Vendor,
    Work,
    Role,
    Default,
}

/// What a call should use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Model(ModelRef),
    /// The first kind that has a model.
    Classes(Vec<ModelClass>),
}

/// The decision of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub wanted: Wanted,
    pub level: Level,
    /// Why, in words.
    pub why: &'static str,
}

/// Chooses the model of a call. `usable` says whether a provider can be called.
#[must_use]
pub fn resolve(ask: &Ask, wishes: &Wishes, usable: impl Fn(Vendor) -> bool) -> Resolved {
    use AgentRole::{Classifier, Indexer, Lead, Review, Scout, Specialist, Summarizer};
    use ModelClass::{Coder, Deep, Documenter, Explainer, Fast, Standard};

    let classes = |classes: &[ModelClass], level, why| Resolved {
        wanted: Wanted::Classes(classes.to_vec()),
        level,
        why,
    };
    let model = |model: &ModelRef, level, why| Resolved { wanted: Wanted::Model(model.clone()), level, why };
    let usable_wish = |wish: &Option<ModelRef>| {
        wish.clone().filter(|model| !ask.role.is_infrastructure() && usable(model.vendor))
    };

    if let Some(forced) = &wishes.forced {
        return model(forced, Level::Forced, "the deployment uses one model for everything");
    }
    if wishes.max_quality {
        let why = "the account asks for the highest quality";
        match ask.role {
            Lead | Review => return classes(&[Deep], Level::MaxQuality, why),
            Specialist => return classes(&[Standard], Level::MaxQuality, why),
            Classifier | Summarizer | Scout | Indexer => {}
        }
    }
    if let Some(canary) = usable_wish(&wishes.canary) {
        return model(&canary, Level::Canary, "the deployment tries this model with a part of the calls");
    }
    if let Some(preferred) = usable_wish(&wishes.preferred) {
        return model(&preferred, Level::Preference, "the account prefers this model");
    }
    let locked = "the model of this step of the platform is fixed";
    match (ask.role, ask.tier) {
        (Classifier | Summarizer, _) => return classes(&[Fast], Level::Locked, locked),
        (Scout, _) => return classes(&[Coder, Standard], Level::Locked, locked),
        (Indexer, Some(tier)) => return classes(&[tier.into()], Level::Locked, locked),
        _ => {}
    }
    if let Some(task) = ask.task {
        return classes(of_task(task, ask.role), Level::Tier, "the size of the task decides");
    }
    if let Some(tier) = ask.tier {
        return classes(&[tier.into()], Level::Tier, "the tier decides");
    }
    if usable(Vendor::Xai) {
        let why = "xAI's models are good at this work";
        match ask.work {
            Some(Work::Explain) => return classes(&[Explainer], Level::Vendor, why),
            Some(Work::Document) => return classes(&[Documenter], Level::Vendor, why),
            _ => {}
        }
    }
    match ask.work {
        Some(Work::Generate) => return classes(&[Standard], Level::Work, "the kind of work decides"),
        Some(Work::Plan | Work::Debug) => return classes(&[Deep], Level::Work, "the kind of work decides"),
        Some(Work::Explain | Work::Document) | None => {}
    }
    match ask.role {
        Lead => classes(&[Deep], Level::Role, "the role decides"),
        Specialist => classes(&[Standard], Level::Role, "the role decides"),
        _ => classes(&[Standard], Level::Default, "nothing else decides"),
    }
}

/// The table by the size of the task and the role.
const fn of_task(task: TaskTier, role: AgentRole) -> &'static [ModelClass] {
    use ModelClass::{Coder, Deep, Fast, Standard};
    match (task, role) {
        (_, AgentRole::Classifier | AgentRole::Summarizer) => &[Fast],
        (TaskTier::Trivial, AgentRole::Specialist) => &[Coder, Fast],
        (TaskTier::Simple, AgentRole::Specialist) => &[Coder, Standard],
        (TaskTier::Trivial | TaskTier::Simple, _) | (TaskTier::Complex, AgentRole::Specialist) => &[Standard],
        (TaskTier::Complex | TaskTier::Architectural, _) => &[Deep],
    }
}

/// The models to call, in this order. The first one is the choice. The others replace it if it fails: models of the same kind
/// from other providers, then the standard and the fast model, then the spare ones. Empty if no provider is usable.
#[must_use]
pub fn chain(resolved: &Resolved, catalog: &Catalog, usable: impl Fn(Vendor) -> bool) -> Vec<ModelRef> {
    let mut chain = Vec::new();
    let add = |chain: &mut Vec<ModelRef>, model: &ModelRef| {
        if usable(model.vendor) && !chain.contains(model) {
            chain.push(model.clone());
        }
    };
    match &resolved.wanted {
        Wanted::Model(model) => add(&mut chain, model),
        Wanted::Classes(classes) => {
            classes.iter().flat_map(|class| catalog.of(*class)).for_each(|model| add(&mut chain, model));
        }
    }
    if resolved.level != Level::Forced {
        for class in [ModelClass::Standard, ModelClass::Fast] {
            let first = catalog.of(class).iter().find(|model| usable(model.vendor));
            first.into_iter().for_each(|model| add(&mut chain, model));
        }
        catalog.spare().iter().for_each(|model| add(&mut chain, model));
        // Somebody's only server may have models of another kind.
        for class in ModelClass::ALL {
            if chain.is_empty() {
                catalog.of(class).iter().for_each(|model| add(&mut chain, model));
            }
        }
    }
    chain.truncate(MAX_CHAIN);
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: fn(Vendor) -> bool = |_| true;

    fn model(text: &str) -> ModelRef {
        text.parse().unwrap()
    }

    fn ask(role: AgentRole) -> Ask {
        Ask { role, ..Ask::default() }
    }

    #[test]
    fn the_table_by_task_and_role_is_the_documented_one() {
        use AgentRole::{Classifier, Lead, Review, Specialist};
        use ModelClass::{Coder, Deep, Fast, Standard};
        let rows: [(TaskTier, [&[ModelClass]; 4]); 4] = [
            (TaskTier::Trivial, [&[Standard], &[Coder, Fast], &[Standard], &[Fast]]),
            (TaskTier::Simple, [&[Standard], &[Coder, Standard], &[Standard], &[Fast]]),
            (TaskTier::Complex, [&[Deep], &[Standard], &[Deep], &[Fast]]),
            (TaskTier::Architectural, [&[Deep], &[Deep], &[Deep], &[Fast]]),
        ];
        for (task, row) in rows {
            for (role, expected) in [Lead, Specialist, Review, Classifier].into_iter().zip(row) {
                let found = resolve(&Ask { task: Some(task), ..ask(role) }, &Wishes::default(), ALL);
                assert_eq!(found.wanted, Wanted::Classes(expected.to_vec()), "{task:?} {role:?}");
            }
        }
    }

    #[test]
    fn the_first_level_that_applies_decides() {
        use AgentRole::{Classifier, Indexer, Lead, Review, Scout, Specialist, Summarizer};
        use ModelClass::{Coder, Deep, Documenter, Explainer, Fast, Standard};
        let none = Wishes::default();
        let own = Wishes { preferred: Some(model("openai/gpt-6-astra")), ..none.clone() };
        let canary = Wishes { canary: Some(model("openai/tuned")), ..own.clone() };
        let best = Wishes { max_quality: true, ..canary.clone() };
        let forced = Wishes { forced: Some(model("compatible/llama")), ..best.clone() };
        let one = |text: &str| Wanted::Model(model(text));
        let of = |classes: &[ModelClass]| Wanted::Classes(classes.to_vec());
        let work = |work| Ask { work: Some(work), ..ask(Review) };
        let tier = |role, tier| Ask { tier: Some(tier), ..ask(role) };
        for (ask, wishes, level, wanted) in [
            (ask(Classifier), &forced, Level::Forced, one("compatible/llama")),
            (tier(Lead, ModelTier::Fast), &best, Level::MaxQuality, of(&[Deep])),
            (ask(Review), &best, Level::MaxQuality, of(&[Deep])),
            (ask(Specialist), &best, Level::MaxQuality, of(&[Standard])),
            (ask(Classifier), &best, Level::Locked, of(&[Fast])),
            (tier(Lead, ModelTier::Fast), &canary, Level::Canary, one("openai/tuned")),
            (ask(Scout), &canary, Level::Locked, of(&[Coder, Standard])),
            (tier(Lead, ModelTier::Fast), &own, Level::Preference, one("openai/gpt-6-astra")),
            (ask(Summarizer), &own, Level::Locked, of(&[Fast])),
            (tier(Indexer, ModelTier::Fast), &own, Level::Locked, of(&[Fast])),
            (tier(Lead, ModelTier::Deep), &none, Level::Tier, of(&[Deep])),
            (
                Ask { task: Some(TaskTier::Simple), ..tier(Lead, ModelTier::Deep) },
                &none,
                Level::Tier,
                of(&[Standard]),
            ),
            (work(Work::Explain), &none, Level::Vendor, of(&[Explainer])),
            (work(Work::Document), &none, Level::Vendor, of(&[Documenter])),
            (work(Work::Generate), &none, Level::Work, of(&[Standard])),
            (work(Work::Plan), &none, Level::Work, of(&[Deep])),
            (work(Work::Debug), &none, Level::Work, of(&[Deep])),
            (ask(Lead), &none, Level::Role, of(&[Deep])),
            (ask(Specialist), &none, Level::Role, of(&[Standard])),
            (ask(Review), &none, Level::Default, of(&[Standard])),
        ] {
            let found = resolve(&ask, wishes, ALL);
            assert_eq!((found.level, &found.wanted), (level, &wanted), "{ask:?} {wishes:?}");
        }
        // A wish for a provider that cannot be called decides nothing.
        let no_openai = |vendor| vendor != Vendor::OpenAi;
        assert_eq!(resolve(&tier(Lead, ModelTier::Fast), &canary, no_openai).level, Level::Tier);
        let no_xai = |vendor| vendor != Vendor::Xai;
        assert_eq!(resolve(&work(Work::Explain), &none, no_xai).level, Level::Default);
    }

    #[test]
    fn a_chain_begins_with_the_choice_and_ends_with_the_spare_models() {
        let chain_of = |tier, usable: &dyn Fn(Vendor) -> bool| {
            let resolved = resolve(&Ask { tier: Some(tier), ..Ask::default() }, &Wishes::default(), usable);
            let chain = chain(&resolved, &Catalog::default(), usable);
            chain.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            chain_of(ModelTier::Deep, &|vendor| matches!(vendor, Vendor::Anthropic | Vendor::Google)),
            [
                "anthropic/claude-opus-5-5",
                "google/gemini-4-argon",
                "anthropic/claude-sonnet-5-5",
                "anthropic/claude-haiku-5-5",
                "google/gemini-3.8-flash",
            ]
        );
        assert_eq!(
            chain_of(ModelTier::Fast, &|vendor| vendor == Vendor::Anthropic),
            ["anthropic/claude-haiku-5-5", "anthropic/claude-sonnet-5-5"]
        );
        assert_eq!(
            chain_of(ModelTier::Standard, &ALL),
            [
                "anthropic/claude-sonnet-5-5",
                "openai/gpt-6.1-sol",
                "google/gemini-3.8-flash",
                "xai/grok-4.3",
                "bedrock/global.anthropic.claude-sonnet-5-5",
                "anthropic/claude-haiku-5-5",
                "google/gemini-4-argon",
            ]
        );
        assert!(chain_of(ModelTier::Standard, &|_| false).is_empty());
        let forced = Wishes { forced: Some(model("xai/grok-4.3")), ..Wishes::default() };
        let forced = resolve(&Ask::default(), &forced, ALL);
        assert_eq!(chain(&forced, &Catalog::default(), ALL), [model("xai/grok-4.3")]);
    }

    #[test]
    fn the_only_usable_model_serves_every_kind() {
        let only = Catalog::default().preferring(&[(ModelClass::Coder, vec![model("mine/coder")])].into());
        let usable = |vendor: Vendor| vendor.as_str() == "mine";
        for tier in ModelTier::ALL {
            let resolved = resolve(&Ask { tier: Some(tier), ..Ask::default() }, &Wishes::default(), usable);
            assert_eq!(chain(&resolved, &only, usable), [model("mine/coder")]);
        }
    }

    #[test]
    fn a_kind_without_a_usable_model_is_replaced() {
        let no_xai = |vendor| vendor == Vendor::Anthropic;
        let ask = Ask { task: Some(TaskTier::Trivial), ..ask(AgentRole::Specialist) };
        let resolved = resolve(&ask, &Wishes::default(), no_xai);
        let first =
            |usable: &dyn Fn(Vendor) -> bool| chain(&resolved, &Catalog::default(), usable)[0].to_string();
        assert_eq!(first(&no_xai), "anthropic/claude-haiku-5-5");
        assert_eq!(first(&ALL), "xai/grok-code-fast-1");
    }
}
