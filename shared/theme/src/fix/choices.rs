//! What is said of a place that was not mended: why, and what a person can do.

use super::How;
use crate::strict::{Kind, Lax, Refusal};

/// Why a place was not mended.
pub fn reason(refusal: &Refusal, is_taken_back: bool, how: How) -> String {
    let why = if is_taken_back {
        "no rewriting was accepted"
    } else {
        match (&refusal.kind, &refusal.lax) {
            (Kind::TooDeep, _) => return refusal.message.clone(),
            (kind, _) if kind.is_pairing() => "it is not clear which part of the file it belongs to",
            (Kind::OpenQuote, Some(_)) if how == How::AsMeant => "it is not clear where the text ends",
            (_, Some(Lax { markup: Some(_), .. })) => {
                "no markup shows the same with the old parser and the new one"
            }
            (_, Some(lax)) => return format!("{}; {}", refusal.message, lax.sentence),
            (_, None) => "the shop never read it, so there is nothing that can stay as it is",
        }
    };
    format!("{}; {why}", refusal.message)
}

/// What a person can do.
pub fn of(name: &str, refusal: &Refusal, how: How) -> Vec<String> {
    let opened = name.strip_prefix("end").unwrap_or(name);
    let choices: Vec<String> = match &refusal.kind {
        Kind::OpenOutput => vec!["write `}}` where the output ends".into(), "delete the output".into()],
        Kind::OpenTag => vec!["write `%}` where the tag ends".into(), "delete the tag".into()],
        Kind::NamelessTag => vec!["delete the tag".into(), "write the name of the tag".into()],
        Kind::UnknownTag => {
            vec!["delete the tag".into(), "if an app has added it, remove what is left of the app".into()]
        }
        Kind::StrayEnd => {
            vec![format!("delete `{name}`"), format!("write the `{opened}` that it ends, before it")]
        }
        Kind::StrayBranch => {
            vec![format!("delete `{name}`"), format!("move `{name}` into the block that it belongs to")]
        }
        Kind::OpenBlock => {
            vec![format!("write `end{opened}` where the block ends"), format!("delete this `{opened}`")]
        }
        Kind::TooDeep => vec!["move the inner blocks into a snippet".into()],
        Kind::VerbatimInLiquid => vec![format!("end `liquid` before, and write `{{% {name} %}}` as a tag")],
        Kind::NestedDoc => {
            vec!["write `enddoc` before it".into(), "delete the inner `doc`".into()]
        }
        Kind::OpenQuote => {
            let mut choices = vec!["write the quote that is missing".into()];
            if how == How::AsMeant && refusal.lax.is_some() {
                choices.push("mend without --as-meant: the page shows what it shows today".into());
            }
            choices
        }
        Kind::RangeType => vec!["write numbers, or variables that hold numbers, as the ends".into()],
        Kind::Target => {
            let mut choices = vec!["give the variable a name of letters, digits, `_` and `-`".into()];
            if name == "assign" {
                choices.push("delete the tag, if nothing reads the variable".into());
            }
            choices
        }
        Kind::Character if matches!(name, "if" | "unless" | "elsif") => {
            let operator =
                "write an operator of Liquid: `==`, `!=`, `>`, `<`, `>=`, `<=`, `contains`, `and`, `or`";
            vec![operator.into(), "put the value in quotes, if it is a text".into()]
        }
        Kind::ElseWithWords => vec!["write `when` in the place of `else`".into(), "delete the words".into()],
        Kind::NameWithoutQuotes => {
            vec![
                "put the name of the file in quotes".into(),
                "write a `case` with a tag for each file".into(),
            ]
        }
        Kind::PaginateWithoutBy => vec!["write `by` and a number behind the list".into()],
        Kind::LoopWithoutIn => {
            vec!["write `in` and a list behind the variable".into(), "delete the loop".into()]
        }
        _ if name.is_empty() => vec!["write what the output is to show".into(), "delete the output".into()],
        _ => vec![format!("write `{name}` as the message says"), "delete the tag".into()],
    };
    choices
}
