//! Settings, blocks, presets and labels of a section's schema, the theme's settings or a JSON template.

use super::json::{Tree, ValueKind};
use super::{DegradedReason, EdgeKind, EdgeNature, ScanResult, SymbolKind, hints};
use crate::text::Span;

/// Keys whose values people read in the theme editor.
const LABEL_KEYS: [&str; 6] = ["name", "label", "info", "content", "category", "unit"];

/// Reads the schema of a section or block.
pub fn scan(text: &str, body: Span, found: &mut ScanResult) {
    let tree = read(text, body, found);
    hints::json(text, &tree, true, found);
    settings_and_labels(text, &tree, found);
    for (index, node) in tree.nodes.iter().enumerate() {
        if node.kind != ValueKind::String || node.key.of(text) != "type" {
            continue;
        }
        let Some(holder) = tree.parent(index) else { continue };
        let Some(list) = tree.parent(holder).filter(|&list| tree.nodes[list].key.of(text) == "blocks") else {
            // Presets may hold their blocks in an object, keyed by id. Its key is also `blocks`.
            continue;
        };
        let at_root = tree.parent(list).is_some_and(|above| tree.is_root(above));
        let body = tree.nodes[holder].span;
        if at_root {
            if node.span.of(text).starts_with('@') {
                found.reference(EdgeKind::Block, EdgeNature::Indirect, node.span);
            } else {
                found.symbol(SymbolKind::BlockType, node.span, body);
            }
        } else {
            found.reference(EdgeKind::Block, EdgeNature::Preset, node.span);
        }
    }
}

/// Reads `config/settings_schema.json`.
pub fn scan_settings(text: &str, found: &mut ScanResult) {
    let tree = read(text, Span::new(0, text.len()), found);
    hints::json(text, &tree, true, found);
    settings_and_labels(text, &tree, found);
}

/// Reads a JSON template or a section group.
pub fn scan_template(text: &str, found: &mut ScanResult) {
    let tree = read(text, Span::new(0, text.len()), found);
    hints::json(text, &tree, false, found);
    for (index, node) in tree.nodes.iter().enumerate() {
        if node.kind != ValueKind::String {
            continue;
        }
        let Some(holder) = tree.parent(index) else { continue };
        match node.key.of(text) {
            "layout" if tree.is_root(holder) => {
                found.reference(EdgeKind::Layout, EdgeNature::Direct, node.span);
            }
            "name" => found.labels.push(node.span),
            "type" => {
                let list = tree.parent(holder).map(|list| tree.nodes[list].key.of(text));
                match list {
                    Some("sections") => found.reference(EdgeKind::Section, EdgeNature::Direct, node.span),
                    Some("blocks") => found.reference(EdgeKind::Block, EdgeNature::Preset, node.span),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

fn read(text: &str, body: Span, found: &mut ScanResult) -> Tree {
    let tree = Tree::read(text, body);
    if let Some(offset) = tree.invalid {
        found.degrade(offset as usize, DegradedReason::InvalidJson);
    }
    let containers = tree.nodes.iter().filter(|n| matches!(n.kind, ValueKind::Object | ValueKind::Array));
    found.blocks.extend(containers.map(|node| node.span));
    tree
}

fn settings_and_labels(text: &str, tree: &Tree, found: &mut ScanResult) {
    for (index, node) in tree.nodes.iter().enumerate() {
        if node.kind != ValueKind::String {
            continue;
        }
        let Some(holder) = tree.parent(index) else { continue };
        let list = tree.parent(holder);
        let list_key = list.map_or("", |list| tree.nodes[list].key.of(text));
        let body = tree.nodes[holder].span;
        match node.key.of(text) {
            "id" if list_key == "settings" => found.symbol(SymbolKind::Setting, node.span, body),
            "name" => {
                found.labels.push(node.span);
                if list_key == "presets" {
                    found.symbol(SymbolKind::Preset, node.span, body);
                } else if tree.is_root(holder) || list.is_some_and(|list| tree.is_root(list)) {
                    found.symbol(SymbolKind::SchemaName, node.span, node.span);
                }
            }
            key if LABEL_KEYS.contains(&key) => found.labels.push(node.span),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Shown<'a> = (Vec<(SymbolKind, &'a str)>, Vec<(EdgeKind, EdgeNature, &'a str)>, Vec<&'a str>);

    fn shown<'a>(text: &'a str, found: &ScanResult) -> Shown<'a> {
        (
            found.symbols.iter().map(|s| (s.kind, s.name.of(text))).collect(),
            found.references.iter().map(|r| (r.kind, r.nature, r.name.of(text))).collect(),
            found.labels.iter().map(|l| l.of(text)).collect(),
        )
    }

    #[test]
    fn a_schema_names_settings_blocks_and_presets() {
        let text = r#"{
            "name": "t:sections.hero.name",
            "settings": [{"type": "text", "id": "title", "label": "Heading"}],
            "blocks": [
                {"type": "@theme"},
                {"type": "slide", "name": "Slide", "settings": [{"type": "url", "id": "link"}]}
            ],
            "presets": [{"name": "Hero", "blocks": [{"type": "slide"}]}]
        }"#;
        let mut found = ScanResult::default();
        scan(text, Span::new(0, text.len()), &mut found);
        let (symbols, references, labels) = shown(text, &found);
        assert_eq!(
            symbols,
            [
                (SymbolKind::SchemaName, "t:sections.hero.name"),
                (SymbolKind::Setting, "title"),
                (SymbolKind::Setting, "link"),
                (SymbolKind::Preset, "Hero"),
                (SymbolKind::BlockType, "slide"),
            ]
        );
        assert_eq!(
            references,
            [
                (EdgeKind::Block, EdgeNature::Indirect, "@theme"),
                (EdgeKind::Block, EdgeNature::Preset, "slide"),
            ]
        );
        assert_eq!(labels, ["t:sections.hero.name", "Heading", "Slide", "Hero"]);
        assert_eq!(found.degraded, []);
    }

    #[test]
    fn a_template_names_its_sections() {
        let text = r#"{"layout": "bare", "sections": {"main": {"type": "main-product",
            "blocks": {"a": {"type": "price"}}}}, "order": ["main"]}"#;
        let mut found = ScanResult::default();
        scan_template(text, &mut found);
        assert_eq!(
            shown(text, &found).1,
            [
                (EdgeKind::Layout, EdgeNature::Direct, "bare"),
                (EdgeKind::Section, EdgeNature::Direct, "main-product"),
                (EdgeKind::Block, EdgeNature::Preset, "price"),
            ]
        );
    }

    #[test]
    fn broken_json_still_names_what_is_whole() {
        let text = r#"{"name": "Hero", "settings": [{"id": "a", "type": "text"}, {"id": "b", ]"#;
        let mut found = ScanResult::default();
        scan(text, Span::new(0, text.len()), &mut found);
        assert_eq!(
            shown(text, &found).0,
            [(SymbolKind::SchemaName, "Hero"), (SymbolKind::Setting, "a"), (SymbolKind::Setting, "b"),]
        );
        assert_eq!(found.degraded.len(), 1);
    }
}
