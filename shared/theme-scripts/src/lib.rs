//! Reads the scripts of a theme with the parser of oxc, for `theme::check`.

mod bounds;

use std::collections::HashSet;
use std::sync::LazyLock;

use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, ArrowFunctionExpression, AssignmentExpression, AssignmentTarget, CallExpression, Expression,
    FormalParameters, Function, StaticMemberExpression, UnaryOperator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{ScopeFlags, SemanticBuilder};
use oxc_span::SourceType;

use theme::check::script::{ScriptFacts, ScriptReader, Unresolved};

/// Names that browsers define.
static BROWSER: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("globals.txt").lines().filter(|line| !line.starts_with('#'));
    let names = lines.flat_map(str::split_whitespace);
    names.chain(SHOPIFY.split_whitespace()).collect()
});

/// Names that the platform and the scripts it adds define, and names of common module loaders.
const SHOPIFY: &str = "arguments Shopify ShopifyAnalytics ShopifyPay ShopifyXR trekkie BOOMR monorail meta _st __st \
    jQuery $ gtag dataLayer fbq ga google YT Vimeo onYouTubeIframeAPIReady module exports require define process \
    globalThis self window ApplePaySession PaymentRequest SPR Swiper Flickity wnw klaviyo _learnq \
    QRCode ModelViewerUI model_viewer analytics";

/// The longest script that is read, in bytes. Larger ones are libraries.
const MAX_SOURCE: usize = 256 * 1024;

const LEAST_STACK: usize = 4 * 1024 * 1024;
/// Measured without optimisation: 250,000 operators in front of each other need 1,500 bytes of stack for each byte of the script.
const STACK_PER_BYTE: usize = 4_096;

/// The parser of oxc.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oxc;

impl ScriptReader for Oxc {
    fn read(&self, source: &str, is_module: bool) -> ScriptFacts {
        if source.len() > MAX_SOURCE {
            let message = format!("the script is not checked: it has more than {} KB", MAX_SOURCE / 1024);
            return ScriptFacts { unread: Some((0, message)), ..ScriptFacts::default() };
        }
        // Nothing can stop the parser, so it gets only what it reads in time.
        if let Err((at, excess)) = bounds::check(source) {
            let message = format!("the script is not checked: {excess}");
            return ScriptFacts { unread: Some((at, message)), ..ScriptFacts::default() };
        }
        // The parser calls itself for each level of nesting, and a thread that runs out of stack ends the process. So it gets a
        // stack for the deepest nesting that a script of this size can have. Only what is used of it takes memory.
        let stack = LEAST_STACK + source.len() * STACK_PER_BYTE;
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(stack);
            let reading = thread.spawn_scoped(scope, || read_either(source, is_module));
            reading.ok().and_then(|reading| reading.join().ok()).unwrap_or_default()
        })
    }
}

fn read_either(source: &str, is_module: bool) -> ScriptFacts {
    let has_modules = is_module || mentions_modules(source);
    let facts = read(source, has_modules);
    if facts.errors.is_empty() || has_modules {
        return facts;
    }
    // A script that is loaded as a module may wait at the top level.
    let other = read(source, true);
    if other.errors.is_empty() { other } else { facts }
}

fn read(source: &str, has_modules: bool) -> ScriptFacts {
    let allocator = Allocator::default();
    let kind = if has_modules { SourceType::mjs() } else { SourceType::script() };
    let options = ParseOptions { allow_return_outside_function: false, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, kind).with_options(options).parse();
    let mut facts = ScriptFacts::default();
    for error in &parsed.errors {
        facts.errors.push(located(error, source.len()));
    }
    if parsed.panicked || !facts.errors.is_empty() {
        return facts;
    }
    let built = SemanticBuilder::new().with_check_syntax_error(true).build(&parsed.program);
    for error in &built.errors {
        facts.errors.push(located(error, source.len()));
    }
    let scoping = built.semantic.scoping();
    let nodes = built.semantic.nodes();
    let mut finder = Finder { facts, guarded: HashSet::new(), given: Vec::new(), depth: 0, is_called: false };
    finder.visit_program(&parsed.program);
    let Finder { mut facts, guarded, .. } = finder;
    for (name, references) in scoping.root_unresolved_references() {
        let name = name.as_str();
        if BROWSER.contains(name) || guarded.contains(name) {
            continue;
        }
        let mut is_guarded = false;
        let mut first = None;
        let is_capital = name.starts_with(|c: char| c.is_ascii_uppercase());
        let mut is_library = true;
        for id in references {
            let reference = scoping.get_reference(*id);
            let node = reference.node_id();
            match nodes.parent_kind(node) {
                AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof => {
                    is_guarded = true;
                }
                // Outside of strict mode, an assignment defines a global name.
                _ if reference.is_write() && !has_modules => {
                    facts.globals.push(name.to_owned());
                    is_guarded = true;
                }
                _ => {}
            }
            let span = oxc_span::GetSpan::span(&nodes.kind(node));
            is_library &= is_capital
                || matches!(
                    nodes.parent_kind(node),
                    AstKind::StaticMemberExpression(_) | AstKind::NewExpression(_)
                );
            let at = span.start as usize;
            first = Some(first.map_or(at, |first: usize| first.min(at)));
        }
        if let (false, Some(at)) = (is_guarded, first) {
            facts.unresolved.push(Unresolved { name: name.to_owned(), at, is_library });
        }
    }
    facts.unresolved.sort_by_key(|unresolved| unresolved.at);
    if !has_modules {
        let root = scoping.root_scope_id();
        facts.globals.extend(scoping.get_bindings(root).keys().map(|name| name.as_str().to_owned()));
    }
    facts
}

fn located(error: &oxc_diagnostics::OxcDiagnostic, len: usize) -> (usize, String) {
    let labels = error.labels.as_deref().unwrap_or_default();
    // Of a name that is declared twice, the second place is the wrong one.
    let is_twice = error.message.contains("already been declared");
    let label = if is_twice { labels.iter().max_by_key(|label| label.offset()) } else { labels.first() };
    let at = label.map_or(len.saturating_sub(1), oxc_diagnostics::LabeledSpan::offset);
    (at, format!("the script is not valid: {}", error.message.trim_end_matches('.')))
}

/// Whether a line begins with `import` or `export`.
fn mentions_modules(source: &str) -> bool {
    source.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("import ")
            || line.starts_with("import{")
            || line.starts_with("import '")
            || line.starts_with("import \"")
            || line.starts_with("export ")
            || line.starts_with("export{")
    })
}

struct Finder {
    facts: ScriptFacts,
    /// Names that the script looks for before it uses them.
    guarded: HashSet<String>,
    /// The parameters of the function around the whole script, which is called at once.
    given: Vec<String>,
    /// How many functions are around this place.
    depth: u32,
    /// Whether the next function is called at once.
    is_called: bool,
}

impl Finder {
    fn selector(&mut self, text: &str, at: u32, prefix: &str) {
        // Only a plain class or id is certain enough.
        let whole = format!("{prefix}{text}");
        for part in whole.split(',') {
            for part in part.split([' ', '>', '+', '~']) {
                let Some(kind) = part.chars().next().filter(|c| matches!(c, '.' | '#')) else { continue };
                let name = &part[1..];
                let end = name
                    .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
                    .unwrap_or(name.len());
                let rest = &name[end..];
                if end > 0 && (rest.is_empty() || rest.starts_with(['.', ':', '['])) && !name.ends_with('-') {
                    self.facts.selectors.push((format!("{kind}{}", &name[..end]), at as usize));
                }
            }
        }
    }
}

impl Finder {
    fn enter(&mut self, parameters: &FormalParameters) {
        if self.depth == 0 && std::mem::take(&mut self.is_called) {
            let names = parameters.items.iter().filter_map(|item| item.pattern.get_identifier_name());
            self.given = names.map(|name| name.to_string()).collect();
        }
        self.depth += 1;
    }

    fn leave(&mut self) {
        self.depth -= 1;
        if self.depth == 0 {
            self.given.clear();
        }
    }
}

impl<'a> Visit<'a> for Finder {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.enter(&function.params);
        walk::walk_function(self, function, flags);
        self.leave();
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.enter(&function.params);
        walk::walk_arrow_function_expression(self, function);
        self.leave();
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = &call.callee
            && let Some(Argument::StringLiteral(text)) = call.arguments.first()
        {
            let at = text.span.start;
            match member.property.name.as_str() {
                "querySelector" | "querySelectorAll" | "closest" | "matches" => {
                    self.selector(&text.value, at, "");
                }
                "getElementById" => self.selector(&text.value, at, "#"),
                "getElementsByClassName" => self.selector(&text.value, at, "."),
                "define" if matches!(&member.object, Expression::Identifier(object) if object.name == "customElements") =>
                {
                    self.facts.elements.push((text.value.to_string(), at as usize));
                }
                _ => {}
            }
        }
        let callee = call.callee.without_parentheses();
        self.is_called = self.depth == 0
            && matches!(callee, Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_));
        walk::walk_call_expression(self, call);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if let Expression::Identifier(object) = &member.object
            && matches!(object.name.as_str(), "window" | "globalThis" | "self")
        {
            self.guarded.insert(member.property.name.to_string());
        }
        walk::walk_static_member_expression(self, member);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        if let AssignmentTarget::StaticMemberExpression(member) = &assignment.left
            && let Expression::Identifier(object) = &member.object
            && (matches!(object.name.as_str(), "window" | "globalThis" | "self")
                || self.depth == 1 && self.given.iter().any(|given| given == object.name.as_str()))
        {
            self.facts.globals.push(member.property.name.to_string());
        }
        walk::walk_assignment_expression(self, assignment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_scripts_are_fine() {
        for source in [
            "class A { #x = 1; static { this.y = 2 } get z() { return this.#x ?? 0 } }",
            "const a = `${[1, 2].map((x) => `{${x}}`).join()}`; window.b = a;",
            "import { x } from 'y'; export default x;",
            "if (typeof Foo !== 'undefined') { new Foo(); }",
            "if (window.Bar) { Bar.run(); }",
            "for await (const x of []) {}",
            "document.addEventListener('x', async (event) => { await fetch(event.target.href); });",
        ] {
            let facts = Oxc.read(source, false);
            assert_eq!((facts.errors, facts.unresolved), (vec![], vec![]), "{source}");
        }
    }

    #[test]
    fn what_stands_in_an_element_with_a_file_is_no_script() {
        for (attributes, expected) in
            [("", 1), (" type=\"module\"", 1), (" src=\"https://a.example/b.js\"", 0)]
        {
            let text = format!("<script{attributes}>{{ \"a\": \"b\", \"c\": 1 }}</script>");
            let theme = theme::check::CheckedTheme::read([("sections/a.liquid", text.as_str())], Some(&Oxc));
            let found = theme.findings();
            let errors = found.iter().filter(|finding| finding.code == "JavaScriptSyntax");
            assert_eq!(errors.count(), expected, "{attributes}");
        }
    }

    #[test]
    fn errors_have_their_places() {
        let check = |source: &str, at: usize, part: &str| {
            let facts = Oxc.read(source, false);
            let (found, message) = facts.errors.first().unwrap_or_else(|| panic!("{source}"));
            assert!(*found == at && message.contains(part), "{source}: {found} {message}");
        };
        check("const a = 1;\nconst a = 2;", 19, "already been declared");
        check("const a = ;", 10, "Unexpected token");
        let facts = Oxc.read("function a() { return b + 1; }", false);
        let found: Vec<(&str, usize)> = facts.unresolved.iter().map(|u| (u.name.as_str(), u.at)).collect();
        assert_eq!(found, [("b", 22)]);
        assert_eq!(facts.globals, ["a"]);
    }

    #[test]
    fn a_name_is_used_as_a_library_or_not() {
        let check = |source: &str, expected: bool| {
            let facts = Oxc.read(source, false);
            let [found] = facts.unresolved.as_slice() else { panic!("{source}: {:?}", facts.unresolved) };
            assert_eq!(found.is_library, expected, "{source}");
        };
        check("gsap.to('.a', {});", true);
        check("new splide('.a');", true);
        check("use(ScrollTrigger); function use(a) {}", true);
        check("tippy(document.body);", false);
        check("if (line) {}", false);
        check("tippy(1); f(tippy); function f() {}", false);
    }

    #[test]
    fn a_library_sets_names_on_what_it_gets() {
        let check = |source: &str, name: &str| {
            assert!(Oxc.read(source, false).globals.iter().any(|global| global == name), "{source}");
        };
        check("!function(t, e) { t.Clip = e() }(this, function() { return 1 });", "Clip");
        check(
            "(function (global, factory) { factory(global.slider = {}); })(this, function () {});",
            "slider",
        );
        check("((e, n) => { e.Lib = n(); })(this, () => 1);", "Lib");
        for source in ["function f(t) { t.line = 1 }", "(function(t) { function g() { t.line = 1 } })(this)"]
        {
            assert!(!Oxc.read(source, false).globals.iter().any(|global| global == "line"), "{source}");
        }
    }

    #[test]
    fn selectors_and_elements_are_collected() {
        let facts = Oxc.read(
            "document.querySelector('.a .b-c, #d'); x.getElementById('e'); customElements.define('my-el', A); y.closest('.f-' + z)",
            false,
        );
        let names: Vec<&str> = facts.selectors.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [".a", ".b-c", "#d", "#e"]);
        assert_eq!(facts.elements[0].0, "my-el");
    }

    #[test]
    fn a_script_over_a_bound_is_not_read() {
        let check = |source: &str, part: &str| {
            let facts = Oxc.read(source, false);
            let (at, message) = facts.unread.unwrap_or_else(|| panic!("{part}"));
            assert!(at <= source.len() && message.contains(part), "{message}");
            assert!(facts.errors.is_empty(), "that is no error");
        };
        check(&"a=(".repeat(1_000), "parameters");
        check(&"[".repeat(1_000), "deep");
        check(&"a".repeat(MAX_SOURCE + 1), "256 KB");
        assert!(Oxc.read(&format!("{}1{}", "(".repeat(100), ")".repeat(100)), false).unread.is_none());
    }

    #[test]
    fn no_nesting_exhausts_the_stack() {
        let parts = [
            "(",
            "[",
            "{",
            "!",
            "-~",
            "a?",
            "`${",
            "x=>",
            "-",
            "a&&",
            "a||",
            "a??",
            "a**",
            "1+",
            "a=",
            "()",
            "a[",
            "[...",
            "({a:",
            "if(a)",
            "if(a){}else ",
            "if(a);else while(b)",
            "for(;;)",
            "while(a)",
            "do ",
            "with(a)",
            "new ",
            "typeof ",
            "await ",
            "yield ",
            "x:",
            "async()=>{",
            "class a extends ",
            "class a{static{",
            "function a(){",
            "switch(a){case 1:",
            "try{",
            "import(",
            "a/*;*/&&",
            "(/*)*/",
            "a.b",
            "a``",
        ];
        let mut broken = 0;
        for part in parts {
            // Long enough to exhaust a thread's usual stack several times.
            let source = part.repeat(48 * 1024 / part.len());
            for text in [source.clone(), format!("async function*f(){{{source}1}}"), format!("a{source}1")] {
                let facts = Oxc.read(&text, false);
                assert!(facts.errors.iter().all(|(at, _)| *at <= text.len()), "{part}: {:?}", facts.errors);
                broken += usize::from(!facts.errors.is_empty() || facts.unread.is_some());
            }
        }
        assert!(broken > parts.len(), "{broken} scripts have errors or are not read");
    }
}
