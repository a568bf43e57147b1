use super::*;

#[test]
fn some_places_are_refused_and_some_are_not() {
    let check = |text: &str, expected: &str| {
        let found = refusals(text);
        let said = found.first().map_or("", |refusal| refusal.parser.as_str());
        assert_eq!(said, expected, "{text}: {found:#?}");
    };
    check("{{ '{{' }}", "");
    check("{%- # {% echo 'x' %} -%}", "");
    check("{{ ['a'] }}", "Bare bracket access is not allowed. Use self['...'] instead");
    check("{{ a.123 }}", "Expected id but found number");
}
