//! A small original theme with one broken section, for tests of the whole index.

/// Paths and contents.
pub const FILES: &[(&str, &str)] = &[
    ("assets/base.css", include_str!("../../../test_data/theme/harbour/assets/base.css")),
    ("assets/cart-drawer.js", include_str!("../../../test_data/theme/harbour/assets/cart-drawer.js")),
    ("assets/collapsible.css", include_str!("../../../test_data/theme/harbour/assets/collapsible.css")),
    ("assets/focus.js", include_str!("../../../test_data/theme/harbour/assets/focus.js")),
    ("assets/icon-cart.svg", include_str!("../../../test_data/theme/harbour/assets/icon-cart.svg")),
    ("assets/icon-close.svg", include_str!("../../../test_data/theme/harbour/assets/icon-close.svg")),
    ("blocks/row.liquid", include_str!("../../../test_data/theme/harbour/blocks/row.liquid")),
    (
        "config/settings_schema.json",
        include_str!("../../../test_data/theme/harbour/config/settings_schema.json"),
    ),
    ("layout/theme.liquid", include_str!("../../../test_data/theme/harbour/layout/theme.liquid")),
    ("locales/de.json", include_str!("../../../test_data/theme/harbour/locales/de.json")),
    ("locales/en.default.json", include_str!("../../../test_data/theme/harbour/locales/en.default.json")),
    (
        "locales/en.default.schema.json",
        include_str!("../../../test_data/theme/harbour/locales/en.default.schema.json"),
    ),
    (
        "sections/announcement.liquid",
        include_str!("../../../test_data/theme/harbour/sections/announcement.liquid"),
    ),
    ("sections/broken.liquid", include_str!("../../../test_data/theme/harbour/sections/broken.liquid")),
    (
        "sections/collapsible.liquid",
        include_str!("../../../test_data/theme/harbour/sections/collapsible.liquid"),
    ),
    ("sections/footer.liquid", include_str!("../../../test_data/theme/harbour/sections/footer.liquid")),
    (
        "sections/header-group.json",
        include_str!("../../../test_data/theme/harbour/sections/header-group.json"),
    ),
    ("sections/header.liquid", include_str!("../../../test_data/theme/harbour/sections/header.liquid")),
    (
        "sections/main-product.liquid",
        include_str!("../../../test_data/theme/harbour/sections/main-product.liquid"),
    ),
    (
        "snippets/cart-drawer.liquid",
        include_str!("../../../test_data/theme/harbour/snippets/cart-drawer.liquid"),
    ),
    ("snippets/icon.liquid", include_str!("../../../test_data/theme/harbour/snippets/icon.liquid")),
    ("snippets/leftover.liquid", include_str!("../../../test_data/theme/harbour/snippets/leftover.liquid")),
    ("snippets/price.liquid", include_str!("../../../test_data/theme/harbour/snippets/price.liquid")),
    (
        "snippets/product-media.liquid",
        include_str!("../../../test_data/theme/harbour/snippets/product-media.liquid"),
    ),
    (
        "snippets/social-icons.liquid",
        include_str!("../../../test_data/theme/harbour/snippets/social-icons.liquid"),
    ),
    ("templates/index.json", include_str!("../../../test_data/theme/harbour/templates/index.json")),
    ("templates/product.json", include_str!("../../../test_data/theme/harbour/templates/product.json")),
];
