//! The types of variables and of their properties.

use super::{Open, Walker};
use crate::check::expression::{Filtered, Step, Value};
use crate::check::names::{NAMES, Type};
use crate::path::FileKind;

impl<'a> Walker<'a, '_> {
    /// Whether the file itself defines the variable: by a tag, a loop around this place, or a parameter.
    pub(super) fn is_local(&self, root: &str) -> bool {
        self.assigned.contains_key(root)
            || self.stack.iter().any(|open| open.variable.is_some_and(|(word, _)| word == root))
            || self.doc_types.contains_key(root)
    }

    /// Whether the variable is that of a loop around this place. Behind `else`, there is no element.
    pub(super) fn is_of_loop(&self, root: &str) -> bool {
        let is_its = |open: &Open| !open.has_else && open.variable.is_some_and(|(word, _)| word == root);
        self.stack.iter().any(is_its)
    }

    /// The type of a variable, and whether it may be an argument of the snippet.
    pub(super) fn type_of(&self, root: &str) -> (Type, bool) {
        let in_loop =
            self.stack.iter().rev().find_map(|open| open.variable.filter(|(word, _)| *word == root));
        if let Some((_, kind)) = in_loop {
            return (kind, false);
        }
        if let Some((times, kind, _)) = self.assigned.get(root) {
            return (if *times == 1 { *kind } else { Type::UNKNOWN }, false);
        }
        if let Some(kind) = self.doc_types.get(root) {
            return (*kind, false);
        }
        let global = NAMES.globals.get(root).copied().unwrap_or(Type::UNKNOWN);
        if root == "block" {
            return (Type { name: "block", is_array: false }, false);
        }
        let may_be_argument = self.kind == FileKind::Snippet
            || (self.kind == FileKind::Block && !NAMES.globals.contains_key(root));
        (global, may_be_argument)
    }

    pub(super) fn type_of_value(&self, value: &Value<'a>) -> Type {
        match value {
            Value::Path { root, steps, .. } => {
                let (mut kind, is_argument) = self.type_of(root);
                if is_argument {
                    return Type::UNKNOWN;
                }
                for step in steps {
                    let name = match step {
                        Step::Name(name) => Some(*name),
                        Step::Index(Value::Text { text, .. }) => Some(*text),
                        Step::Index(_) => None,
                    };
                    kind = step_into(kind, name).unwrap_or(Type::UNKNOWN);
                }
                kind
            }
            Value::Text { .. } => Type { name: "string", is_array: false },
            Value::Number { .. } => Type { name: "number", is_array: false },
            _ => Type::UNKNOWN,
        }
    }

    pub(super) fn type_of_filtered(&self, filtered: &Filtered<'a>) -> Type {
        let mut kind = self.type_of_value(&filtered.value);
        for filter in &filtered.filters {
            kind = match filter.name {
                "where" | "sort" | "sort_natural" | "reverse" | "compact" | "uniq" | "reject"
                    if kind.is_array =>
                {
                    kind
                }
                "first" | "last" | "find" if kind.is_array => Type { is_array: false, ..kind },
                _ => Type::UNKNOWN,
            };
        }
        kind
    }

    pub(super) fn element_of(&self, value: &Value<'a>) -> Type {
        let kind = self.type_of_value(value);
        if kind.is_array { Type { is_array: false, ..kind } } else { Type::UNKNOWN }
    }
}

/// Objects whose elements are read by a handle.
const BY_HANDLE: [&str; 8] =
    ["collection", "page", "blog", "article", "link", "product", "image", "metaobject"];

/// The type of a property. `None` if the object does not have it; an unknown type if nothing is known.
pub fn step_into(kind: Type, name: Option<&str>) -> Option<Type> {
    if !kind.is_known() {
        return Some(Type::UNKNOWN);
    }
    if kind.is_array {
        let element = Type { is_array: false, ..kind };
        return Some(match name {
            Some("size") => Type { name: "number", is_array: false },
            Some("first" | "last") | None => element,
            Some(_) if BY_HANDLE.contains(&kind.name) => element,
            Some(_) => Type::UNKNOWN,
        });
    }
    let Some(properties) = NAMES.objects.get(kind.name) else { return Some(Type::UNKNOWN) };
    let Some(name) = name else { return Some(Type::UNKNOWN) };
    if properties.is_empty() || matches!(name, "size" | "first" | "last" | "metafields") {
        return Some(Type::UNKNOWN);
    }
    properties.get(name).copied()
}

/// What is wrong with a chain of properties, if something is.
pub fn wrong_property(mut kind: Type, names: &[Option<String>]) -> Option<String> {
    /// Properties that work and are not documented.
    const MORE: &str = "line_item.options line_item.index variant.options variant.instructions shop.locale shop.currency \
        shop.features shop.checkout image.url image.presentation media.presentation product.selected_options \
        request.visual_preview_mode article.published section.block_order section.shopify_attributes block.blocks \
        link.links theme.role customer.new_address customer.addresses_count collection.results_count collection.terms \
        recommendations.performed search.products_count search.all_products_count search.articles_count search.filters \
        predictive_search_resources.queries theme.settings";
    for name in names {
        match step_into(kind, name.as_deref()) {
            Some(next) => kind = next,
            None => {
                let name = name.as_deref().unwrap_or_default();
                let is_more =
                    MORE.split_whitespace().any(|known| known.split_once('.') == Some((kind.name, name)));
                if kind.name == "form" || is_more {
                    return None;
                }
                return Some(format!("`{}` has no property `{name}`", kind.name));
            }
        }
    }
    None
}
