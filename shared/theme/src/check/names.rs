//! The names of Shopify's Liquid: filters, tags, objects and their properties.
//!
//! `names.txt` holds the documented names. The constants below are names that work and are not documented, and facts
//! that the documentation states only in prose.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

/// The type of an expression, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// An object's name, `string`, `number`, `boolean` or `untyped`.
    pub name: &'static str,
    pub is_array: bool,
}

impl Type {
    pub const UNKNOWN: Self = Self { name: "untyped", is_array: false };

    pub fn is_known(self) -> bool {
        self.name != "untyped"
    }

    fn read(text: &'static str) -> Self {
        match text.strip_suffix("[]") {
            Some(name) => Self { name, is_array: true },
            None => Self { name: text, is_array: false },
        }
    }
}

pub struct Names {
    pub filters: FxHashSet<&'static str>,
    pub deprecated_filters: FxHashSet<&'static str>,
    pub tags: FxHashSet<&'static str>,
    /// The variables that every template has, or that some kinds of templates have.
    pub globals: FxHashMap<&'static str, Type>,
    pub objects: FxHashMap<&'static str, FxHashMap<&'static str, Type>>,
}

/// Filters that work under another name.
const MORE_FILTERS: &str = "t handle camelcase h encode_url_component sort_by url_for_vendor payment_icon_png_url inspect format_code \
    edit_customer_address_link delete_customer_address_link";

const MORE_TAGS: &str = "ifchanged #";

/// Variables of certain places: inside a form, a loop, a section.
const LOCAL_OBJECTS: &str = "section block form paginate forloop tablerowloop recommendations predictive_search search \
    comment checkout robots app sitemap group rule user_agent theme_name locale country block_id page_title product_variant";

pub static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let mut names = Names {
        filters: MORE_FILTERS.split_whitespace().collect(),
        deprecated_filters: FxHashSet::default(),
        tags: MORE_TAGS.split_whitespace().collect(),
        globals: FxHashMap::default(),
        objects: FxHashMap::default(),
    };
    let mut values: FxHashMap<&str, Type> = FxHashMap::default();
    let mut globals: Vec<&'static str> = LOCAL_OBJECTS.split_whitespace().collect();
    for line in include_str!("names.txt").lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "filters" => names.filters.extend(rest.split(' ')),
            "deprecated_filters" => names.deprecated_filters.extend(rest.split(' ')),
            "tags" => names.tags.extend(rest.split(' ')),
            "globals" => globals.extend(rest.split(' ')),
            "object" => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                if let Some(value) = rest.strip_prefix('=') {
                    let value = value.trim();
                    values.insert(name, if value.is_empty() { Type::UNKNOWN } else { Type::read(value) });
                    continue;
                }
                let property = |word: &'static str| {
                    let (name, kind) = word.split_once(':').unwrap_or((word, "string"));
                    (name, Type::read(kind))
                };
                names.objects.insert(name, rest.split_whitespace().map(property).collect());
            }
            _ => {}
        }
    }
    for name in globals {
        let is_object = names.objects.contains_key(name);
        let fallback = if is_object { Type { name, is_array: false } } else { Type::UNKNOWN };
        names.globals.insert(name, values.get(name).copied().unwrap_or(fallback));
    }
    names
});

/// Variables that only one layout has, by its path. They are documented as text only, or not at all: `content_checkpoint` is what Shopify
/// puts into the page that asks whether a visitor is a person.
const LAYOUT_OBJECTS: [(&str, &str); 2] = [
    ("layout/checkpoint.liquid", "content_checkpoint"),
    (
        "layout/checkout.liquid",
        "alternative_payment_methods breadcrumb checkout_html_classes checkout_scripts checkout_stylesheets \
         content_for_footer content_for_logo content_for_order_summary direction order_summary_toggle \
         skip_to_content_link tracking_code",
    ),
];

/// Whether the platform defines the variable in this layout only.
pub fn is_of_layout(path: &str, name: &str) -> bool {
    LAYOUT_OBJECTS
        .iter()
        .any(|(layout, names)| *layout == path && names.split_whitespace().any(|known| known == name))
}

/// The kinds of forms that `{% form %}` knows.
pub const FORMS: [&str; 16] = [
    "activate_customer_password",
    "cart",
    "contact",
    "create_customer",
    "currency",
    "customer",
    "customer_address",
    "customer_login",
    "guest_login",
    "localization",
    "new_comment",
    "product",
    "recover_customer_password",
    "reset_customer_password",
    "storefront_password",
    "store_credit",
];

/// How many arguments without a name a filter takes: at least, at most.
pub fn arity(filter: &str) -> Option<(usize, usize)> {
    Some(match filter {
        "abs" | "capitalize" | "ceil" | "downcase" | "escape" | "escape_once" | "first" | "floor"
        | "last" | "lstrip" | "newline_to_br" | "reverse" | "rstrip" | "size" | "strip" | "strip_html"
        | "strip_newlines" | "upcase" | "url_decode" | "url_encode" | "md5" | "sha1" | "sha256"
        | "base64_encode" | "base64_decode" | "asset_url" | "url_escape" | "url_param_escape" => (0, 0),
        "append"
        | "prepend"
        | "remove"
        | "remove_first"
        | "remove_last"
        | "split"
        | "map"
        | "concat"
        | "times"
        | "plus"
        | "minus"
        | "divided_by"
        | "modulo"
        | "at_least"
        | "at_most"
        | "hmac_sha1"
        | "hmac_sha256"
        | "within"
        | "sort_by"
        | "color_lighten"
        | "color_darken"
        | "color_saturate"
        | "color_desaturate"
        | "color_contrast"
        | "color_extract"
        | "color_difference"
        | "brightness_difference" => (1, 1),
        "replace" | "replace_first" | "replace_last" => (1, 2),
        "slice" | "where" | "reject" | "find" | "find_index" | "has" => (1, 2),
        "pluralize" | "color_modify" | "font_modify" | "color_mix" => (2, 2),
        "round" | "join" | "sort" | "sort_natural" | "uniq" | "compact" | "sum" => (0, 1),
        "truncate" | "truncatewords" => (0, 2),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_knows_filters_objects_and_their_properties() {
        assert!(NAMES.filters.contains("image_url") && NAMES.filters.contains("t"));
        assert!(NAMES.deprecated_filters.contains("img_url"));
        assert!(NAMES.tags.contains("render") && NAMES.tags.contains("sections"));
        assert_eq!(NAMES.globals["product"], Type { name: "product", is_array: false });
        assert_eq!(NAMES.objects["product"]["variants"], Type { name: "variant", is_array: true });
        assert_eq!(NAMES.objects["product"]["title"].name, "string");
    }
}
