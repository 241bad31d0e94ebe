//! Files that appear whole or not at all.

use std::path::Path;

use anyhow::{Context, Result};
use ulpian::mining::files::{behind_link, is_special};

/// Has `write` make a file beside `path`, and moves it there when it is complete. The folder is made where needed. What a link
/// leads to is replaced, not the link; a device or a pipe is written into.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let at = || path.display().to_string();
    if is_special(path) {
        return write(path).with_context(at);
    }
    let target = behind_link(path);
    let folder = folder_of(&target);
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let staged = tempfile::NamedTempFile::new_in(folder).with_context(at)?.into_temp_path();
    write(&staged).with_context(at)?;
    as_a_new_file(&staged).with_context(at)?;
    staged.persist(&target).with_context(at)
}

/// Gives a temporary file, which is private, the permissions that files are usually made with.
fn as_a_new_file(file: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644))?;
    }
    let _ = file;
    Ok(())
}

/// The folder that a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
