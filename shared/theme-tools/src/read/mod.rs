//! Readers above those of the crate `theme`: nesting of Liquid, elements of HTML, values of JSON, schemas, stored settings, hiding CSS.

pub mod condition;
pub mod css;
pub mod html;
pub mod json;
pub mod labels;
pub mod liquid;
pub mod schema;
pub mod stored;
