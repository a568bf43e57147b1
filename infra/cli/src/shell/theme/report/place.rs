//! Where the files of a theme are, as seen from where the command runs. Programs that show findings beside the code need it.

use std::path::{Component, Path, PathBuf};

/// Where the files of a checked theme are.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The folder of the theme. None for the theme of a project, whose paths begin at the top of the theme.
    folder: Option<PathBuf>,
    /// The folder of the change.
    overlay: Option<PathBuf>,
}

impl Place {
    /// The place of a theme in a folder.
    #[must_use]
    pub fn of_folder(folder: &Path, overlay: Option<&Path>) -> Self {
        Self { folder: Some(folder.to_owned()), overlay: overlay.map(Path::to_owned) }
    }

    /// The path of a file of the theme. It is relative if the file is below the folder where the command runs.
    #[must_use]
    pub fn of(&self, path: &str) -> String {
        let Some(folder) = &self.folder else { return path.to_owned() };
        let changed = self.overlay.as_ref().filter(|overlay| overlay.join(path).is_file());
        let here = std::env::current_dir().ok();
        from(here.as_deref(), &changed.unwrap_or(folder).join(path))
    }
}

/// The path with slashes, without `.`, and seen from `here` if it is below it.
fn from(here: Option<&Path>, path: &Path) -> String {
    let path = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let mut text = String::new();
    for part in path.components().filter(|part| *part != Component::CurDir) {
        if !text.is_empty() && !text.ends_with('/') {
            text.push('/');
        }
        text.push_str(&part.as_os_str().to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_where_the_command_runs() {
        let here = Some(Path::new("/home/ada/shop"));
        for (path, expected) in [
            ("./theme/sections/a.liquid", "theme/sections/a.liquid"),
            ("././sections/a.liquid", "sections/a.liquid"),
            ("../theme/sections/a.liquid", "../theme/sections/a.liquid"),
            ("/home/ada/shop/theme/sections/a.liquid", "theme/sections/a.liquid"),
            ("/other/sections/a.liquid", "/other/sections/a.liquid"),
        ] {
            assert_eq!(from(here, Path::new(path)), expected);
        }
        assert_eq!(Place::default().of("sections/a.liquid"), "sections/a.liquid");
    }

    #[test]
    fn a_changed_file_is_in_the_folder_of_the_change() {
        let change = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(change.path().join("sections")).expect("a folder in it");
        std::fs::write(change.path().join("sections/a.liquid"), "x").expect("a file in it");
        let place = Place::of_folder(Path::new("theme"), Some(change.path()));
        assert_eq!(place.of("sections/b.liquid"), "theme/sections/b.liquid");
        assert_eq!(Path::new(&place.of("sections/a.liquid")), change.path().join("sections/a.liquid"));
    }
}
