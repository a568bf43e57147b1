// Joins the modules of the console into one script, in the order of their imports. All names of all modules are then in one
// scope, so a module may use only a small part of the language's module system, and this says what it does not accept.

use std::collections::BTreeMap;

/// A module: what it imports, what it declares, and its text without `import` and `export`.
struct Module {
    imports: Vec<(String, Vec<String>)>,
    declared: Vec<String>,
    exported: Vec<String>,
    body: String,
}

/// Joins `modules`, which are names such as `main.js` with their texts, beginning with what `main` needs.
///
/// # Errors
/// If a module is missing, is not used, imports itself in a circle, or uses a form of import or export that can't be joined, or if two
/// modules declare the same name.
pub fn join(modules: &BTreeMap<String, String>, main: &str) -> Result<String, String> {
    let mut read = BTreeMap::new();
    for (name, text) in modules {
        read.insert(name.as_str(), parse(name, text)?);
    }
    let mut order = Vec::new();
    visit(main, &read, &mut Vec::new(), &mut order)?;
    if let Some(unused) = read.keys().find(|name| !order.contains(&(**name).to_owned())) {
        return Err(format!("{unused} is not imported by any module: delete it, or import it"));
    }
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut joined = String::new();
    for name in &order {
        let module = &read[name.as_str()];
        for declared in &module.declared {
            if let Some(other) = owners.insert(declared, name) {
                return Err(format!("{other} and {name} both declare `{declared}`: rename one of them"));
            }
        }
        for (from, names) in &module.imports {
            if let Some(missing) = names.iter().find(|one| !read[from.as_str()].exported.contains(one)) {
                return Err(format!("{name} imports `{missing}` from {from}, which does not export it"));
            }
        }
        joined.push_str(&module.body);
    }
    Ok(joined)
}

/// Adds a module after all that it imports.
fn visit<'a>(
    name: &'a str,
    read: &'a BTreeMap<&str, Module>,
    path: &mut Vec<&'a str>,
    order: &mut Vec<String>,
) -> Result<(), String> {
    if order.iter().any(|done| done == name) {
        return Ok(());
    }
    if path.contains(&name) {
        return Err(format!("modules import each other in a circle: {} -> {name}", path.join(" -> ")));
    }
    let module = read.get(name).ok_or_else(|| format!("{name} does not exist"))?;
    path.push(name);
    for (from, _) in &module.imports {
        visit(from, read, path, order)?;
    }
    path.pop();
    order.push(name.to_owned());
    Ok(())
}

fn parse(name: &str, text: &str) -> Result<Module, String> {
    let mut module =
        Module { imports: Vec::new(), declared: Vec::new(), exported: Vec::new(), body: String::new() };
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let at = |problem: &str| format!("{name}:{}: {problem}", number + 1);
        if line.starts_with("import ") || line.starts_with("import{") {
            let mut statement = line.to_owned();
            while !statement.contains(';') {
                let (_, more) = lines.next().ok_or_else(|| at("the import does not end with `;`"))?;
                statement.push(' ');
                statement.push_str(more.trim());
            }
            module.imports.push(import(&statement).map_err(|problem| at(&problem))?);
            continue;
        }
        let (exported, rest) =
            line.strip_prefix("export ").map_or((false, line), |rest| (true, rest.trim_start()));
        match declared(rest) {
            Some(names) => {
                if exported {
                    module.exported.extend(names.iter().cloned());
                }
                module.declared.extend(names);
            }
            None if exported => {
                return Err(at("export only `function`, `const`, `let` or `class`, with its name"));
            }
            None => {}
        }
        // A comment that fills a line is for readers of the sources.
        if !rest.starts_with("//") {
            module.body.push_str(rest);
            module.body.push('\n');
        }
    }
    Ok(module)
}

/// `import { a, b } from "./c.js";`
fn import(statement: &str) -> Result<(String, Vec<String>), String> {
    let form = "write `import { a, b } from \"./c.js\";`, without renames";
    let (names, from) = statement
        .strip_prefix("import")
        .and_then(|rest| rest.trim().strip_prefix('{'))
        .and_then(|rest| rest.split_once('}'))
        .ok_or(form)?;
    let from = from.trim().strip_prefix("from").ok_or(form)?;
    let from = from.trim().trim_end_matches(';').trim_matches('"').strip_prefix("./").ok_or(form)?;
    let names: Vec<String> =
        names.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect();
    if names.is_empty() || names.iter().any(|one| !is_name(one)) {
        return Err(form.to_owned());
    }
    Ok((from.to_owned(), names))
}

/// The names that a line at the left edge declares.
fn declared(line: &str) -> Option<Vec<String>> {
    let after = |keyword: &str| line.strip_prefix(keyword);
    let rest = after("async function* ")
        .or_else(|| after("async function "))
        .or_else(|| after("function* "))
        .or_else(|| after("function "))
        .or_else(|| after("class "))
        .or_else(|| after("const "))
        .or_else(|| after("let "))?;
    if let Some(pattern) = rest.strip_prefix(['{', '[']) {
        let names = pattern.split(['}', ']']).next()?;
        return Some(names.split(',').map(str::trim).filter(|one| is_name(one)).map(str::to_owned).collect());
    }
    let end = rest.find(|c: char| !is_name_character(c)).unwrap_or(rest.len());
    (end > 0).then(|| vec![rest[..end].to_owned()])
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_character)
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}
