//! The mode that a prompt asks for, and the agent that is recommended.

use proptest::prelude::*;

use crate::context::mode::{Warning, parse};
use crate::context::recommend::{agents, recommend};
use crate::context::{Cause, Mode, Mode::*, ModeRequest};

#[test]
fn the_first_token_says_the_mode() {
    let check = |prompt: &str, mode: Mode, rest: &str, warnings: &[Warning]| {
        let expected = ModeRequest { mode, prompt: rest.to_owned(), warnings: warnings.to_vec() };
        assert_eq!(parse(prompt), expected, "{prompt:?}");
    };
    let plain: &[Warning] = &[];
    let none: &[Warning] = &[Warning::NoKeyword];
    for (prompt, mode, rest) in [
        ("PLAN x", Plan, "x"),
        ("ACT x", Act, "x"),
        ("EVAL x", Eval, "x"),
        ("AUTO x", Auto, "x"),
        ("plan x", Plan, "x"),
        ("pLaN x", Plan, "x"),
        ("PLAN: x", Plan, "x"),
        ("PLAN:x", Plan, "x"),
        ("PLAN：x", Plan, "x"),
        ("PLAN : x", Plan, "x"),
        ("PLAN :fire: x", Plan, ":fire: x"),
        ("  PLAN\n\n x y ", Plan, "x y"),
        ("act:\tx", Act, "x"),
        ("계획 로그인", Plan, "로그인"),
        ("실행: 로그인", Act, "로그인"),
        ("평가 x", Eval, "x"),
        ("자동 x", Auto, "x"),
        ("計画：ログイン", Plan, "ログイン"),
        ("実行　ログイン", Act, "ログイン"),
        ("評価 x", Eval, "x"),
        ("自動 x", Auto, "x"),
        ("计划 登录", Plan, "登录"),
        ("执行：登录", Act, "登录"),
        ("评估 x", Eval, "x"),
        ("自动 x", Auto, "x"),
        ("PLANIFICAR x", Plan, "x"),
        ("Actuar: x", Act, "x"),
        ("evaluar x", Eval, "x"),
        ("AUTOMÁTICO x", Auto, "x"),
        ("automático x", Auto, "x"),
        ("AUTOMA\u{301}TICO x", Auto, "x"),
    ] {
        check(prompt, mode, rest, plain);
    }
    for prompt in [
        "PLANNING x",
        "please PLAN x",
        "Build a login page",
        "plan-x y",
        "PLAN, x",
        "(PLAN) x",
        "계획을 세워",
        "計画的に x",
        "计划书 x",
        "自動化 x",
        "PLANx",
        "",
        "  ",
        ":",
        "： PLAN x",
    ] {
        check(prompt, Plan, prompt, none);
    }
    for (prompt, mode, rest) in [
        ("PLAN ACT x", Plan, "ACT x"),
        ("PLAN: ACT: x", Plan, "ACT: x"),
        ("act plan x", Act, "plan x"),
        ("EVAL EVAL x", Eval, "EVAL x"),
        ("AUTO 計画 x", Auto, "計画 x"),
    ] {
        check(prompt, mode, rest, &[Warning::SeveralKeywords(mode)]);
    }
    for (prompt, mode) in
        [("PLAN", Plan), ("act:", Act), ("自动：", Auto), ("EVAL \n", Eval), ("auto : ", Auto)]
    {
        check(prompt, mode, "", &[Warning::NothingAfterKeyword]);
    }
    check("PLAN ACT", Plan, "ACT", &[Warning::SeveralKeywords(Plan)]);
    check("PLAN PLANNING x", Plan, "PLANNING x", plain);
}

#[test]
fn modes_are_named_in_capitals() {
    for mode in Mode::ALL {
        assert_eq!(mode.name().parse(), Ok(mode));
        assert_eq!(serde_json::from_value::<Mode>(serde_json::to_value(mode).unwrap()).unwrap(), mode);
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
    }
    for (cause, word) in [
        (Cause::Begun, "begun"),
        (Cause::Updated, "updated"),
        (Cause::Imported, "imported"),
        (Cause::Restored, "restored"),
    ] {
        assert_eq!(serde_json::to_value(cause).unwrap(), word);
        assert_eq!(serde_json::from_value::<Cause>(word.into()).unwrap(), cause);
    }
    for wrong in ["", "plan", "PLANNING", "REVIEW"] {
        let message = format!("Invalid mode: {wrong}. Must be PLAN, ACT, EVAL, or AUTO");
        assert_eq!(wrong.parse::<Mode>().unwrap_err().to_string(), message);
    }
}

#[test]
fn a_request_gets_the_agent_whose_words_it_has() {
    for (request, agent) in [
        ("Implement user authentication", "backend-developer"),
        ("Add rate limiting to the login endpoints", "backend-developer"),
        ("Make the button of the React form responsive", "frontend-developer"),
        ("Add a migration for the orders table in Postgres", "data-engineer"),
        ("Deploy with Terraform and Docker", "devops-engineer"),
        ("Raise test coverage with Playwright", "test-engineer"),
        ("Fix the XSS vulnerability", "security-engineer"),
        ("An Android screen in Kotlin", "mobile-developer"),
        ("Tune the embedding model", "ml-engineer"),
        ("Write the README and the changelog", "technical-writer"),
        ("Tidy up", "software-engineer"),
        ("", "software-engineer"),
        ("로그인 기능을 추가해줘", "software-engineer"),
    ] {
        assert_eq!(recommend(request).agent, agent, "{request}");
    }
    let sure = recommend("REST API endpoint on the server");
    assert_eq!(sure.reason, "The request speaks of api, server, endpoint, rest.");
    assert_eq!(f64::from(sure.confidence), 0.95);
    assert!(f64::from(recommend("login test").confidence) < f64::from(recommend("login").confidence));
}

proptest! {
    #[test]
    fn every_prompt_has_a_mode_and_an_agent(prompt: String) {
        let request = parse(&prompt);
        prop_assert!(prompt.contains(&request.prompt));
        prop_assert!(agents().any(|agent| agent == recommend(&prompt).agent));
    }

    #[test]
    fn what_follows_a_keyword_is_the_prompt(rest in "[a-z]{1,8}( [a-zA-Z:*-]{1,8}){0,5}") {
        prop_assume!(parse(&rest).warnings == [Warning::NoKeyword]);
        for keyword in ["PLAN", "act:", "评估：", "automático"] {
            prop_assert_eq!(&parse(&format!("{keyword} {rest}")).prompt, &rest);
        }
    }
}
